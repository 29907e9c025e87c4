"""Which source tuples an epoch does without, because custom code failed for them, and when they are replayed. Pure.

With `on_error: retry(n)` a tuple that fails takes the whole source tuple it comes from out of the epoch: no sink and no
state sees any of it, as if it had come later. It does come later: `back_off` epochs after, and after each further
failure twice as long. What an epoch postpones is agreed once, like the epoch itself, before the epoch is committed. So
everything about replays follows from the log, in every replica and after every crash.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.epochs.sequence import Anchor

MAX_BACK_OFF = 64

Offset = Mapping[str, Any]


@dataclass(frozen=True)
class Origin:
    """Where a source tuple was first read."""

    epoch: int
    position: int


@dataclass(frozen=True)
class Late:
    """A source tuple that an epoch does without."""

    anchor: Anchor
    """What it was called in that epoch."""
    origin: Origin
    attempts: int
    """How often it has been processed so far, and failed."""


@dataclass(frozen=True)
class Span:
    """The part of a source that an epoch read, and in how many slices: a position counts within these."""

    begin: Offset
    end: Offset
    slices: int


@dataclass(frozen=True)
class Postponed:
    """What one epoch does without. Agreed once, never changed."""

    epoch: int
    tuples: tuple[Late, ...] = ()
    """In the order of their sequences."""
    spans: Mapping[tuple[int, int], Span] = field(default_factory=dict)
    """By source and epoch, what the tuples' positions refer to."""

    def sequences(self) -> list[int]:
        return [late.anchor.sequence for late in self.tuples]

    def due(self, epoch: int) -> tuple[Late, ...]:
        """Those of its tuples that `epoch` replays."""
        return tuple(late for late in self.tuples if self.epoch + back_off(late.attempts) == epoch)

    def waiting_after(self, epoch: int) -> bool:
        """Whether any of its tuples is replayed later than in `epoch`."""
        return any(self.epoch + back_off(late.attempts) > epoch for late in self.tuples)

    def to_json(self) -> str:
        # Thousands of tuples may fail at once, and a coordinator's entries are small: so they are packed.
        numbers = [_steps(column) for column in zip(*(_numbers(late) for late in self.tuples), strict=True)]
        packed = base64.b64encode(zlib.compress(json.dumps(numbers, separators=(",", ":")).encode())).decode()
        spans = [[*key, span.begin, span.end, span.slices] for key, span in self.spans.items()]
        return json.dumps({"epoch": self.epoch, "tuples": packed if self.tuples else "", "spans": spans})

    @classmethod
    def from_json(cls, text: str) -> Postponed:
        fields = json.loads(text)
        numbers = json.loads(zlib.decompress(base64.b64decode(fields["tuples"]))) if fields["tuples"] else []
        rows = zip(*(itertools.accumulate(column) for column in numbers), strict=True)
        tuples = tuple(
            Late(Anchor(fields["epoch"], source, position, bool(replayed)), Origin(epoch, at), attempts)
            for source, position, replayed, epoch, at, attempts in rows
        )
        spans = {(source, epoch): Span(begin, end, slices) for source, epoch, begin, end, slices in fields["spans"]}
        return cls(fields["epoch"], tuples, spans)


def asked_after(epoch: int, wanted: Mapping[tuple[int, Origin], Span], before: Postponed | None = None) -> Postponed:
    """What is replayed right after an epoch because somebody asks for it, besides what was asked for before.

    `wanted` are source tuples by source and origin, with what their positions refer to.
    """
    spans = {} if before is None else dict(before.spans)
    origins = [] if before is None else [(late.anchor.source, late.origin) for late in before.tuples]
    for (source, origin), span in wanted.items():
        if (source, origin) not in origins:
            origins.append((source, origin))
            spans[source, origin.epoch] = span
    tuples = (Late(Anchor(epoch, source, number, replayed=True), origin, 1)
              for number, (source, origin) in enumerate(origins))  # fmt: skip
    return Postponed(epoch, tuple(tuples), spans)


def back_off(attempts: int) -> int:
    """How many epochs later a tuple is replayed that has failed so often: 1, 2, 4, … and 64 at most."""
    return min(int(2 ** min(attempts - 1, 30)), MAX_BACK_OFF)


@dataclass(frozen=True)
class Replay:
    """A source tuple that an epoch reads again."""

    late: Late
    anchor: Anchor
    """What it is called in the epoch that replays it."""
    span: Span


def replays_in(epoch: int, log: Iterable[Postponed]) -> list[Replay]:
    """The source tuples that `epoch` replays, in the same order every time."""
    numbers: dict[int, int] = {}
    replays = []
    for postponed in sorted(log, key=lambda item: item.epoch):
        for late in postponed.due(epoch):
            source = late.anchor.source
            number = numbers[source] = numbers.get(source, -1) + 1
            span = postponed.spans[source, late.origin.epoch]
            replays.append(Replay(late, Anchor(epoch, source, number, replayed=True), span))
    return replays


def _numbers(late: Late) -> tuple[int, ...]:
    anchor = late.anchor
    return (
        anchor.source, anchor.position, int(anchor.replayed), late.origin.epoch, late.origin.position, late.attempts
    )  # fmt: skip


def _steps(column: Iterable[int]) -> list[int]:
    """The differences from each number to the next: mostly small ones, which pack well."""
    before = 0
    steps = []
    for number in column:
        steps.append(number - before)
        before = number
    return steps
