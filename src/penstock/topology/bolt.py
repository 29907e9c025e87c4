"""Storm's bolt: a class whose `process` sees each tuple and emits any number of new ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.topology.model import DEFAULT_PORT


@dataclass(frozen=True)
class Context:
    """What custom code may know of where it runs."""

    operator: str
    instance: int
    """Which of the operator's parallel instances this is, from 0."""


class Fail(Exception):
    """Raise it in custom code to fail the tuple at hand: `raise Fail("no such customer")`.

    What becomes of the tuple is the operator's `on_error`, as for every other exception.
    """


class Bolt:
    """Subclass it and write `process`. One object serves many tuples and many epochs of a worker process.

    Keep nothing in `self` that the result depends on: a worker may end at any time.
    """

    context: Context
    _emit: Callable[[str, Any], None]
    _fail: Callable[[Any, str], None]

    def initialize(self, **arguments: Any) -> None:
        """Called once before the first tuple, with what the topology gives under `with`."""

    def process(self, tup: Any) -> None:
        """Called for every tuple; call `self.emit` as often as there is something to say.

        `tup.user`, `tup["user"]` and `tup[1]` all give a field.
        """
        raise TypeError(f"{type(self).__name__} has no process(self, tup)")

    def emit(self, *values: Any, port: str = DEFAULT_PORT) -> None:
        """Send a tuple on: `emit("word", 1)`, `emit(("word", 1))` or `emit({"word": …})`."""
        self._emit(port, values[0] if len(values) == 1 else values)

    def fail(self, tup: Any, reason: str = "failed") -> None:
        """Fail the tuple that `process` was given: what it emitted for it is discarded, before and after.

        What becomes of the tuple is the operator's `on_error`. Another tuple than the present one cannot be failed.
        """
        self._fail(tup, reason)
