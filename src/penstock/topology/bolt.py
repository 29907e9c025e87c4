"""Storm's bolt: a class whose `process` sees each tuple and emits any number of new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from penstock.topology.context import Context
from penstock.topology.model import DEFAULT_PORT

__all__ = ["Bolt", "Context", "Fail", "has_timers"]


class Fail(Exception):
    """Raise it in custom code to fail the tuple at hand: `raise Fail("no such customer")`.

    What becomes of the tuple is the operator's `on_error`, as for every other exception.
    """


class Bolt:
    """Subclass it and write `process`. One object serves many tuples and many epochs of a worker process.

    Keep nothing in `self` that the result depends on: a worker may end at any time.
    """

    auto_ack: ClassVar[bool] = True
    """Whether a tuple counts as done when `process` returns. A class that sets it to False must `ack` or `fail` every
    tuple it is given; see `finish`. It needs `acking: true` in the topology."""

    context: Context
    _emit: Callable[[str, Any, Any], None]
    _ack: Callable[[Any], None]
    _fail: Callable[[Any, str], None]

    def initialize(self, **arguments: Any) -> None:
        """Called once before the first tuple, with what the topology gives under `with`."""

    def process(self, tup: Any) -> None:
        """Called for every tuple; call `self.emit` as often as there is something to say.

        `tup.user`, `tup["user"]` and `tup[1]` all give a field.
        """
        raise TypeError(f"{type(self).__name__} has no process(self, tup)")

    def process_epoch(self, **ports: list[Any]) -> None:
        """Called instead of `process` where the topology says `access: synchronous`: once for every epoch in which this
        instance has tuples, with the tuples of each input port as a list, in the order read. May emit.

        Write it with the ports as its arguments: `process_epoch(self, orders, payments)`. A port that has no tuple in
        the epoch gives an empty list; nothing waits for a later one.
        """
        raise TypeError(f"{type(self).__name__} has no process_epoch(self, …)")

    def on_timer(self, name: str) -> None:
        """Called when a timer of the key in `self.context.key` is due; see `context.timers`. May emit.

        Only for operators with a `key`. All timers of an epoch are called after all its tuples.
        """
        raise TypeError(f"{type(self).__name__} has no on_timer(self, name)")

    def finish(self) -> None:
        """Called when this instance has been given all its tuples of an epoch, if there were any, and only when
        `auto_ack` is False.

        Write out here what is held back, and ack it. A tuple that is neither acked nor failed is then waited for, until
        `ack_timeout` after it was given to `process`.
        """

    def emit(self, *values: Any, port: str = DEFAULT_PORT, anchor: Any = None) -> None:
        """Send a tuple on: `emit("word", 1)`, `emit(("word", 1))` or `emit({"word": …})`.

        It comes from the tuple that `process` was given last. In `finish` and in threads of its own, a bolt with
        `auto_ack = False` says from which: `emit("word", 1, anchor=tup)`. It must not be acked yet.
        """
        self._emit(port, values[0] if len(values) == 1 else values, anchor)

    def ack(self, tup: Any) -> None:
        """The tuple is done with, and what was emitted for it may go on. Only for bolts with `auto_ack = False`.

        May be called from any thread, with the very object that `process` was given. For a tuple that is decided
        already, or that has been given up, it does nothing.
        """
        self._ack(tup)

    def fail(self, tup: Any, reason: str = "failed") -> None:
        """Fail the tuple that `process` was given: what it emitted for it is discarded, before and after.

        What becomes of the tuple is the operator's `on_error`. Another tuple than the present one can be failed only
        by a bolt with `auto_ack = False`: any that it has not acked yet, from any thread.
        """
        self._fail(tup, reason)


def has_timers(code: object) -> bool:
    """Whether code, as a topology names it, is a class that is called when a timer is due."""
    return isinstance(code, type) and getattr(code, "on_timer", Bolt.on_timer) is not Bolt.on_timer
