"""What the figures say: ratios, and whether the goals are reached. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from side_by_side.contestants import BATCH_FUNCTION, FUNCTION, JSON, PENSTOCK, STATELESS, WORD_COUNT
from side_by_side.runs import Ran

NOT_RUN = "not run"


@dataclass(frozen=True)
class Figure:
    """What is known of one contestant at one job: how fast it is, or why that is not known."""

    rate: float | None = None
    """Tuples a second, or bytes."""
    trouble: str | None = None


Figures = Mapping[str, Figure]
"""By contestant."""


@dataclass(frozen=True)
class Goal:
    """Penstock has to be so many times as fast as the fastest of some peers, or as itself at another job."""

    job: str
    times: float
    said: str
    peers: tuple[str, ...] = ()
    """Nobody in particular: all of them."""
    own_job: str | None = None


GOALS = (
    Goal(STATELESS.name, 2.0, "2 × PyFlink", ("pyflink",)),
    Goal(WORD_COUNT.name, 1.3, "1.3 × the best peer"),
    Goal(FUNCTION.name, 5.0, "5 × PyFlink", ("pyflink",)),
    Goal(FUNCTION.name, 1.0, "ahead of PySpark by hand", ("pyspark",)),
    Goal(BATCH_FUNCTION.name, 3.0, "3 × a function for each tuple", own_job=FUNCTION.name),
    Goal(JSON.name, 3.0, "3 × every peer"),
)


@dataclass(frozen=True)
class Verdict:
    """A goal, and how near it is."""

    goal: Goal
    ratio: float | None
    """None where there is nothing to compare."""

    @property
    def reached(self) -> bool | None:
        return None if self.ratio is None else self.ratio >= self.goal.times

    def __str__(self) -> str:
        if self.ratio is None:
            return f"{self.goal.said}: not measured"
        return f"{self.goal.said}: {'yes' if self.reached else 'no'}, {self.ratio:.2f} ×"


def figure_of(runs: Sequence[Ran], amount: float) -> Figure:
    """The median over the runs; one that failed or was wrong spoils them all."""
    trouble = next((run.trouble for run in runs if run.trouble is not None), None)
    seconds = [run.seconds for run in runs if run.seconds is not None]
    if trouble is not None or not seconds:
        return Figure(trouble=trouble or NOT_RUN)
    return Figure(amount / median(seconds))


def ratio(ours: Figure | None, theirs: Figure | None) -> float | None:
    """How many times as fast we are."""
    if ours is None or theirs is None or not ours.rate or not theirs.rate:
        return None
    return ours.rate / theirs.rate


def verdict(goal: Goal, results: Mapping[str, Figures]) -> Verdict:
    """Against the fastest of those that the goal names and that have a figure."""
    figures = results.get(goal.job, {})
    ours = figures.get(PENSTOCK)
    if goal.own_job is not None:
        return Verdict(goal, ratio(ours, results.get(goal.own_job, {}).get(PENSTOCK)))
    named = goal.peers or tuple(name for name in figures if name != PENSTOCK)
    ratios = [ratio(ours, figures.get(name)) for name in named]
    return Verdict(goal, min((each for each in ratios if each is not None), default=None))
