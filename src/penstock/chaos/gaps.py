"""Gaps between delivered epochs: around what was done to replicas, and at other times. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Delivered = tuple[float, int]
"""When an epoch was seen to be delivered, and which."""
Stretch = tuple[float, float]
"""From a blow until all replicas were safe again."""


@dataclass(frozen=True)
class Gap:
    """Between two epochs that were delivered one after the other."""

    began: float
    ended: float
    epoch: int
    """The last one before it."""

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass(frozen=True)
class GapReport:
    """Whether anybody who looks at the output could notice what was done."""

    quiet: float
    """Seconds of the longest gap while nothing was done and all replicas were safe."""
    struck: float
    """Seconds of the longest gap between a blow and the time when all were safe again."""
    struck_after: int
    """The epoch before that gap."""
    interval: float
    """The topology's `epoch.interval`."""
    slowest_recovery: float
    """Seconds from a blow until all were safe again, at worst."""

    @property
    def goal(self) -> float:
        """Seconds that a gap around a blow may last: as long as the longest one otherwise, and one interval."""
        return self.quiet + self.interval

    @property
    def hidden(self) -> bool:
        """Whether no gap around a blow was longer than that."""
        return self.struck <= self.goal

    def __str__(self) -> str:
        goal = f"{self.quiet:.2f} s otherwise and an interval of {self.interval:.2f} s"
        verdict = "nobody could notice" if self.hidden else "LONGER THAN THE GOAL"
        return (
            f"longest gap between epochs around a blow: {self.struck:.2f} s, after epoch {self.struck_after}; goal: at "
            f"most {goal}: {verdict}; all replicas safe again after {self.slowest_recovery:.1f} s at worst"
        )


def gap_report(
    delivered: Sequence[Delivered], stretches: Sequence[Stretch], safe_from: float, interval: float
) -> GapReport:
    """`safe_from` is when all replicas were safe for the first time: what was before that does not count."""
    gaps = [gap for gap in gaps_of(delivered) if gap.began >= safe_from]
    struck = [gap for gap in gaps if _touches(gap, stretches)]
    quiet = [gap for gap in gaps if not _touches(gap, stretches)]
    worst = max(struck, key=lambda gap: gap.seconds, default=Gap(0.0, 0.0, 0))
    return GapReport(
        max((gap.seconds for gap in quiet), default=0.0),
        worst.seconds,
        worst.epoch,
        interval,
        max((ended - began for began, ended in stretches), default=0.0),
    )


def gaps_of(delivered: Iterable[Delivered]) -> Iterator[Gap]:
    for (before, epoch), (after, _) in pairwise(delivered):
        yield Gap(before, after, epoch)


def longest_around(gaps: Iterable[Gap], stretch: Stretch) -> float:
    """Seconds of the longest of the gaps that touch a stretch."""
    return max((gap.seconds for gap in gaps if _touches(gap, [stretch])), default=0.0)


def _touches(gap: Gap, stretches: Sequence[Stretch]) -> bool:
    return any(gap.began < ended and gap.ended > began for began, ended in stretches)
