"""Windows: tuples put together by their time or by their number, and what is computed of each window."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from penstock.errors import TopologyError
from penstock.topology.durations import parse_duration, write_duration
from penstock.topology.model import Custom, FrozenOptions, Operator, option
from penstock.topology.problems import suggest
from penstock.topology.schema import Schema, split_top_level
from penstock.topology.sql_text import QUOTE_IT, closes_what_it_opens

WINDOW_START = "window_start"
WINDOW_END = "window_end"
WINDOW_FIRST = "window_first"
WINDOW_LAST = "window_last"

EXAMPLES = "tumbling(1 minute), sliding(10 minutes, 1 minute), session(5 minutes) or tumbling(100 tuples)"

_NUMBER = re.compile(r"\d+(\.\d+)?")
_TUPLES = re.compile(r"(?P<number>\d+)\s*tuples?", re.IGNORECASE)
_EVERY = re.compile(r"every (?P<number>\d+) epochs?")
_WRITTEN = re.compile(r"\s*(?P<kind>[\w-]+)\s*\((?P<durations>[^()]*)\)\s*")


class WindowKind(StrEnum):
    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


@dataclass(frozen=True)
class Span:
    """Which stretches of time make a window, in milliseconds; or how many tuples."""

    kind: WindowKind
    length: int
    """How long a window is; of a session, the gap after which it ends."""
    step: int
    """How far the starts of two windows are apart; of a session, its gap."""
    of_tuples: bool = False
    """Whether tuples are counted, and no time is looked at."""

    def __str__(self) -> str:
        lengths = (self.length, self.step) if self.kind is WindowKind.SLIDING else (self.length,)
        return f"{self.kind}({', '.join(self._written(each) for each in lengths)})"

    def _written(self, length: int) -> str:
        if not self.of_tuples:
            return write_duration(length)
        return "1 tuple" if length == 1 else f"{length} tuples"


def parse_span(text: str) -> Span:
    """Read `tumbling(1 minute)` and its like; raises TopologyError that says what would be right."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        cut = QUOTE_IT if not closes_what_it_opens(text) else ""
        raise TopologyError(f"'{text}' is not a window; {cut}write {EXAMPLES}")
    kinds = {str(kind): kind for kind in WindowKind}
    kind = kinds.get(match["kind"].lower())
    if kind is None:
        advice = suggest(match["kind"], kinds) or f"write {EXAMPLES}"
        raise TopologyError(f"unknown window '{match['kind']}': {advice}")
    parts = [part.strip() for part in split_top_level(match["durations"])]
    wanted = 2 if kind is WindowKind.SLIDING else 1
    if len(parts) != wanted or not all(parts):
        needs = "its length and its step" if kind is WindowKind.SLIDING else "one length"
        raise TopologyError(f"'{text}': {kind} takes {needs}; write {EXAMPLES}")
    numbers = [_TUPLES.fullmatch(part) for part in parts]
    of_tuples = any(numbers)
    if of_tuples and kind is WindowKind.SESSION:
        raise TopologyError(f"'{text}': a session ends with a break in time; write session(5 minutes), or "
                            f"tumbling({parts[0]})")
    if of_tuples and not all(numbers):
        raise TopologyError(f"'{text}': one length counts tuples and the other time; write both in tuples, or both in "
                            "time")
    lengths = [_tuples(number["number"]) if number else _milliseconds(part)
               for number, part in zip(numbers, parts, strict=True)]
    if lengths[-1] > lengths[0]:
        raise TopologyError(f"'{text}': with a step longer than the window, tuples between two windows would be lost")
    return Span(kind, lengths[0], lengths[-1], of_tuples)


def parse_emission(text: str) -> str:
    """Read `close`, `changes` or `every 5 epochs`; raises TopologyError that says what would be right."""
    plain = " ".join(text.lower().split())
    every = _EVERY.fullmatch(plain)
    if every is None and plain not in ("close", "changes"):
        advice = suggest(plain, ("close", "changes")) or "write close, changes, or for example every 5 epochs"
        raise TopologyError(f"'{text}' does not say when windows appear: {advice}")
    if every is not None and int(every["number"]) < 1:
        raise TopologyError(f"'{text}': give at least one epoch")
    return "changes" if every is not None and int(every["number"]) == 1 else plain


def _tuples(text: str) -> int:
    if int(text) < 1:
        raise TopologyError(f"'{text} tuples' cannot be the length of a window: give at least one")
    return int(text)


def _milliseconds(text: str) -> int:
    seconds = float(text) if _NUMBER.fullmatch(text) else parse_duration(text)
    if seconds is None:
        raise TopologyError(f"'{text}' is not a duration: write for example 30s, 1 minute, 2h")
    milliseconds = round(seconds * 1000, 6)
    if milliseconds < 1 or milliseconds % 1:
        raise TopologyError(f"'{text}' cannot be the length of a window: give whole milliseconds, at least one")
    return int(milliseconds)


@dataclass(frozen=True)
class Window(Operator):
    """Put tuples together by time or number, and by key, and compute something of each window."""

    keyword: ClassVar[str] = "window"
    argument: ClassVar[str] = "span"
    stateful: ClassVar[bool] = True

    span: Span = option("`tumbling(1 minute)`, `sliding(10 minutes, 1 minute)` or `session(5 minutes)`; by number, "
                        "`tumbling(100 tuples)` or `sliding(100 tuples, 10 tuples)`.", type="window")
    on: str | None = option("The column with a tuple's time; without it, the time of its epoch.", type="string")
    lateness: float = option("How far a tuple's time may lie behind the latest seen before its window is closed.",
                             default=0.0, type="duration")
    keys: tuple[str, ...] = option("The columns that make the key; none: all tuples together.", default=(),
                                   type="columns", key="by")
    compute: tuple[str, ...] = option("What to compute of a window: `count() as clicks`, `sum(amount) as total`…",
                                      default=(), type="expressions")
    code: str | None = option("Instead of `compute`, your own function of a window and its tuples: `module:function`.",
                              type="code", key="custom")
    emits: tuple[tuple[str, Schema], ...] = option("With `custom`, the schema of what the function gives.",
                                                   default=(), type="emits")
    arguments: FrozenOptions = option("With `custom`, keyword arguments for the function.", default=FrozenOptions(),
                                      type="mapping", key="with")
    emit: str = option("`close`: each window once, when it is closed. `changes`: whenever an epoch has changed it. "
                       "`every 5 epochs`: in every fifth epoch, if it has changed since.",
                       default="close", type="emission", choices=("close", "changes", "every n epochs"))
    late: str = option("What becomes of a tuple whose windows are closed: `drop` counts it, `dead-letter` writes it to "
                       "the dead letters, `update` closes no window.",
                       default="drop", type="choice", choices=("drop", "update", "dead-letter"))

    @property
    def function(self) -> Custom | None:
        """The user's own function, as an operator that is given whole windows; None where Spark computes."""
        if self.code is None:
            return None
        return Custom(self.name, self.inputs, code=self.code, emits=self.emits, arguments=self.arguments,
                      where=self.where)

    @property
    def counts_tuples(self) -> bool:
        """Whether a window is so many tuples of a key, whenever they come."""
        return self.span.of_tuples

    @property
    def closes(self) -> bool:
        """Whether a window's row appears when it is closed, once."""
        return self.emit == "close"

    @property
    def every(self) -> int:
        """Where windows appear whenever they have changed: they do in every so manieth epoch."""
        written = _EVERY.fullmatch(self.emit)
        return int(written["number"]) if written else 1

    @property
    def forgets(self) -> bool:
        """Whether windows are closed at all, and what is remembered of them goes."""
        return self.late != "update"

    @property
    def buries(self) -> bool:
        """Whether tuples that come too late go to the dead letters."""
        return self.late == "dead-letter"
