"""Kill a word count in the middle, start it again, and see what its output was like."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from peers_jobs.work import Work

from side_by_side.answers import Key, check_counts, counted_rows, last_counts, repeated_rows, words_due
from side_by_side.contestants import Contestant
from side_by_side.new_rows import NewRows
from side_by_side.runs import PATIENCE_SECONDS, Started
from side_by_side.telling import Telling

_LOOK_SECONDS = 0.05
_KILL_AT = 0.4
"""The part of the tuples that must be in the output before the kill."""

Growth = tuple[float, int]
"""When the output came to hold so many tuples."""


@dataclass(frozen=True)
class Recovered:
    """What a kill did to the output, or why it cannot be told."""

    silent_seconds: float | None = None
    """From the last result before the kill to the first new one after it."""
    usual_seconds: float | None = None
    """The longest time between two results before the kill."""
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    """Rows that were written again."""
    trouble: str | None = None


def silent_seconds(growth: Sequence[Growth], killed: float) -> float | None:
    """How long nothing new came around the kill; None when nothing came before it, or after it."""
    before = [moment for moment, _ in growth if moment <= killed]
    after = [moment for moment, _ in growth if moment > killed]
    return after[0] - before[-1] if before and after else None


def usual_seconds(growth: Sequence[Growth], killed: float) -> float | None:
    """The longest time between two results before the kill."""
    moments = [moment for moment, _ in growth if moment <= killed]
    return max((later - sooner for sooner, later in pairwise(moments)), default=None)


class Watch:
    """Looks at an output folder, and notes when more tuples are in it than ever before."""

    def __init__(self, out: Path) -> None:
        self._rows = NewRows(out)
        self._counts: dict[Key, int] = {}
        self.growth: list[Growth] = []

    @property
    def tuples(self) -> int:
        return self.growth[-1][1] if self.growth else 0

    def look(self) -> None:
        """Costs what is new, however much there is already: whoever watches has the same processors."""
        moment = time.monotonic()
        with suppress(FileNotFoundError):  # A folder went while it was looked at: next time, then.
            for key, count in self._rows.look():
                self._counts[key] = max(count, self._counts.get(key, 0))
        tuples = sum(self._counts.values())
        if tuples > self.tuples:
            self.growth.append((moment, tuples))


def kill_and_recover(contestant: Contestant, python: Path, work: Work, telling: Telling) -> Recovered:
    watch = Watch(work.out)
    with Started(contestant, python, work) as started:
        trouble = _watched(started, watch, telling, until=int(work.tuples * _KILL_AT))
        if trouble is not None or started.ended():
            return Recovered(trouble=trouble or "it ended before it could be killed")
        started.kill()
        # What it had written last, nobody may have seen yet.
        watch.look()
        killed = time.monotonic()
    with Started(contestant, python, work) as started:
        trouble = _watched(started, watch, telling)
    if trouble is not None:
        return Recovered(trouble=f"after the kill: {trouble}")
    try:
        watch.look()
        rows = list(counted_rows(work.out))
    except ValueError as error:
        return Recovered(trouble=f"its result cannot be read: {error}")
    answer = check_counts(last_counts(rows), words_due(work.tuples))
    told = Recovered(
        silent_seconds(watch.growth, killed), usual_seconds(watch.growth, killed), answer.lost, answer.doubled,
        repeated_rows(rows))
    return replace(told, trouble=f"{answer.wrong} words that nobody sent") if answer.wrong else told


def _watched(started: Started, watch: Watch, telling: Telling, until: int | None = None) -> str | None:
    """Watch until so many tuples are in the output, or the program has ended; what went wrong."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not started.ended():
        if until is not None and watch.tuples >= until:
            return None
        if time.monotonic() > deadline:
            return f"not done after {PATIENCE_SECONDS:.0f} seconds"
        watch.look()
        telling.look()
        time.sleep(_LOOK_SECONDS)
    return started.reason() if started.process.returncode else None
