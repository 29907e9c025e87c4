"""Between Arrow batches and the tuples that custom code sees."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa


@lru_cache(maxsize=256)
def tuple_class(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
    """Makes tuples whose fields are found by attribute, by name and by number."""
    base = namedtuple("Tuple", names, rename=True)  # type: ignore[misc]  # the names are known at run time
    position = {name: index for index, name in enumerate(names)}

    class Tuple(base):
        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            return base.__getitem__(self, position[key] if type(key) is str else key)

        def __repr__(self) -> str:
            return "(" + ", ".join(f"{name}={self[name]!r}" for name in names) + ")"

    # Tuple._make would also count the values, of every tuple.
    return partial(tuple.__new__, Tuple)


def rows_of(batch: pa.RecordBatch, names: tuple[str, ...]) -> Iterator[Any]:
    """The batch's rows as tuples of the columns `names`."""
    make = tuple_class(names)
    columns = [batch.column(name).to_pylist() for name in names]
    if not columns:
        return (make(()) for _ in range(batch.num_rows))
    return map(make, zip(*columns, strict=True))


def as_values(emitted: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """One emitted tuple as values in column order; raises ValueError that says what does not fit.

    A dict is taken by name, a tuple or list by position, anything else is the value of the only column.
    """
    if isinstance(emitted, dict):
        if emitted.keys() != set(names):
            missing = [name for name in names if name not in emitted]
            extra = [str(name) for name in emitted if name not in names]
            raise ValueError(_difference(missing, extra, names))
        return tuple(emitted[name] for name in names)
    if isinstance(emitted, (tuple, list)):
        if len(emitted) != len(names):
            raise ValueError(f"{len(emitted)} values for {len(names)} columns ({', '.join(names)})")
        return tuple(emitted)
    if len(names) == 1:
        return (emitted,)
    raise ValueError(f"{emitted!r} is one value, but there are {len(names)} columns ({', '.join(names)})")


def many(returned: Any) -> Iterable[Any]:
    """What a function of a tuple returned, as a series of tuples.

    None is none; a tuple, a dict, a string or a number is one; a list, a generator or any other
    iterable is many.
    """
    if returned is None:
        return ()
    if isinstance(returned, (tuple, dict, str, bytes)) or not hasattr(returned, "__iter__"):
        return (returned,)
    iterable: Iterable[Any] = returned
    return iterable


def _difference(missing: list[str], extra: list[str], names: tuple[str, ...]) -> str:
    parts = []
    if missing:
        parts.append(f"no {', '.join(missing)}")
    if extra:
        parts.append(f"unknown {', '.join(extra)}")
    return f"{' and '.join(parts)}; the columns are {', '.join(names)}"
