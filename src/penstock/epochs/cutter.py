"""Decide where the next epoch ends. Pure apart from asking the sources how far they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.epochs.postponed import Postponed, replays_in
from penstock.epochs.record import EpochRecord


class CutResult(Protocol):
    """What a source answers: see `connectors.base.Cut`."""

    @property
    def end(self) -> dict[str, Any]: ...
    @property
    def tuples(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def backlog(self) -> int: ...


class Cuttable(Protocol):
    """The part of a source that the cutter needs."""

    def cut(self, start: dict[str, Any], limit: int) -> CutResult: ...


def cut_next_epoch(
    epoch: int,
    starts: Mapping[str, dict[str, Any]],
    sources: Mapping[str, Cuttable],
    limit: int,
    time_ms: int,
    tick: bool = False,
    postponed: Sequence[Postponed] | None = None,
    ended_before: Sequence[str] | None = None,
    end_is_held: bool = False,
) -> EpochRecord | None:
    """The record of `epoch`, which begins at `starts`; None while there is nothing to process.

    With `tick` it is cut although every source is idle, so that time goes on: windows close, timers fire.

    When every source has ended the epoch is cut even if it is empty: it carries the mark `last`, by
    which every replica knows that it is done.

    `postponed` is None where no tuple can be postponed. Otherwise epochs are cut while any waits to be replayed, and
    the last epoch is an empty one: only of that is it known that nothing fails.

    `ended_before` is None where no window is closed. Otherwise it names the sources whose end the epoch before knew:
    windows close in the epoch after the one that knows, so the last epoch is an empty one after the end of all.

    With `end_is_held` no source is taken to have ended: the topology waits, as if more might come.
    """
    if ended_before is not None and set(ended_before) == set(sources):
        ended = tuple(sorted(ended_before))
        return EpochRecord(epoch, time_ms, starts, dict.fromkeys(sources, 0), last=True, ended=ended)
    cuts = {name: source.cut(starts[name], limit) for name, source in sources.items()}
    tuples = {name: cut.tuples for name, cut in cuts.items()}
    at_end = set() if end_is_held else {name for name, cut in cuts.items() if cut.ended}
    last = len(at_end) == len(cuts)
    moved = any(cuts[name].end != starts[name] for name in cuts)
    names = list(sources)
    replays = Counter(names[replay.anchor.source] for replay in replays_in(epoch, postponed or ()))
    waiting = any(item.waiting_after(epoch) for item in postponed or ())
    if postponed is not None and (moved or replays or waiting):
        last = False
    known_ends = set(ended_before or ())
    ended_now: set[str] = set()
    if ended_before is not None:
        last = False
        if postponed is None or not (moved or replays or waiting):
            ended_now = at_end - known_ends
    if not (moved or last or tick or replays or waiting or ended_now):
        return None
    ends = {name: cut.end for name, cut in cuts.items()}
    backlog = sum(cut.backlog for cut in cuts.values())
    return EpochRecord(epoch, time_ms, ends, tuples, backlog, last, replays=dict(replays),
                       ended=tuple(sorted(known_ends | ended_now)))
