"""What is remembered of one key, as bytes: a version, and a pickle in which only plain values may be.

Plain values are numbers, texts, bytes, dates and times, decimals, UUIDs, and tuples, lists, sets and mappings of them.
An object of a user's class is refused: its class would have to stay as it is for as long as the state lives.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

_VERSION = 1

PLAIN_NAMES = {
    "builtins": {"bool", "bytearray", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "uuid": {"UUID", "SafeUUID"},
    "zoneinfo": {"ZoneInfo"},
}
"""The classes whose objects may be in a state, by module; those that pickle knows by itself need no mention."""


class NotPlain(Exception):
    """A value of another kind than a state can keep, or bytes that are no state."""


@dataclass(slots=True)
class Item:
    """One named thing that is remembered of a key.

    `kind` is `value`, `list` or `map`. Where there is a time to live, `expires` says when each part ends, in
    milliseconds: one number for a value, a list beside a list, a mapping beside a map.
    """

    kind: str
    content: Any
    expires: Any = None


@dataclass(slots=True)
class Remembered:
    """All that is remembered of one key."""

    items: dict[str, Item] = field(default_factory=dict)
    timers: dict[str, int] = field(default_factory=dict)
    """When each timer is due, by name, in milliseconds."""
    wake: int | None = None
    """The moment for which the key is entered in Spark's index of timers, if it is."""

    @property
    def empty(self) -> bool:
        return not self.items and not self.timers


def encode(remembered: Remembered) -> bytes:
    """Raises NotPlain when there is something that a state cannot keep."""
    items = {name: (item.kind, item.content, item.expires) for name, item in remembered.items.items()}
    buffer = io.BytesIO(bytes((_VERSION,)))
    buffer.seek(1)
    _PlainPickler(buffer, 5).dump((items, remembered.timers, remembered.wake))
    return buffer.getvalue()


def decode(encoded: bytes) -> Remembered:
    """Raises NotPlain when these bytes were not made by `encode`, or by a later version of it."""
    if encoded[:1] != bytes((_VERSION,)):
        raise NotPlain(f"a state of version {encoded[0] if encoded else 'none'}; this Penstock knows {_VERSION}")
    buffer = io.BytesIO(encoded)
    buffer.seek(1)
    items, timers, wake = _PlainUnpickler(buffer).load()
    return Remembered({name: Item(*parts) for name, parts in items.items()}, timers, wake)


class _PlainPickler(pickle.Pickler):
    """Asked only about what is no number, text, list, mapping… of the plain kind."""

    def reducer_override(self, found: Any) -> Any:
        kind = found if isinstance(found, type) else type(found)
        if kind.__name__ not in PLAIN_NAMES.get(kind.__module__, ()):
            raise NotPlain(
                f"{found!r} is {kind.__module__}.{kind.__qualname__}: a state keeps plain values only (numbers, texts, "
                "bytes, dates, lists, mappings …)"
            )
        # Its own way asks for `getattr` when it is read again, and that could call anything.
        return (ZoneInfo, (found.key,)) if isinstance(found, ZoneInfo) else NotImplemented


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name.split(".")[0] not in PLAIN_NAMES.get(module, ()):
            raise NotPlain(f"{module}.{name} in a state, which keeps plain values only")
        return super().find_class(module, name)
