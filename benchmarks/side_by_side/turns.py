"""Everybody runs once, then everybody again: what is measured, in which order, and what is known so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers_jobs.work import Work

from side_by_side.answers import Key
from side_by_side.contestants import JOBS, JSON, RECOVERY, Contestant, Job
from side_by_side.environments import NotInstalled, python_of
from side_by_side.events import write_events
from side_by_side.ratios import Figure, figure_of
from side_by_side.recovery import Recovered, kill_and_recover
from side_by_side.runs import Ran, run_once, scratch_folder
from side_by_side.table import rate
from side_by_side.telling import Telling

_RECOVERY_RATE = 10_000
_RECOVERY_SECONDS, _QUICK_RECOVERY_SECONDS = 60, 30


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    contestants: Sequence[Contestant]
    jobs: Sequence[str]
    repeat: int
    quick: bool
    megabytes: int
    """Of JSON lines."""
    scale: float = 1.0
    """So many times the tuples of the jobs that make them up."""


@dataclass(frozen=True)
class Origin:
    """When a job was measured, and how."""

    date: str
    command: str

    def __str__(self) -> str:
        return f"{self.date}, `{self.command}`" if self.command else self.date


UNKNOWN = Origin("nobody noted when", "")
"""Of figures that were written before this was noted."""


@dataclass(frozen=True)
class Task:
    """A job and its input."""

    job: Job
    tuples: int
    amount: float
    """What a rate counts: tuples, or bytes."""
    input: Path | None = None
    counts: Mapping[Key, int] = field(default_factory=dict)
    """What the lines of the input must come to."""


def made_up(job: Job, plan: Plan) -> Task:
    """A job whose tuples each contestant makes up itself."""
    tuples = max(int((job.quick_tuples if plan.quick else job.tuples) * plan.scale), 1)
    return Task(job, tuples, tuples)


class Turns:
    """All runs, and what came of them."""

    def __init__(self, plan: Plan, telling: Telling) -> None:
        self._plan = plan
        self._telling = telling
        self._pythons: dict[str, Path] = {}
        self._missing: dict[str, str] = {}
        self.amounts: dict[str, float] = {}
        self.runs: dict[str, dict[str, list[Ran]]] = {}
        """By job and contestant."""
        self.recovered: dict[str, list[Recovered]] = {}
        self.earlier: dict[str, Origin] = {}
        """The jobs that an earlier run has measured."""

    def take(self) -> Iterator[None]:
        """Measure everything; after each turn, what is known so far may be looked at."""
        self._find_contestants()
        for job in (job for job in JOBS if job.name in self._plan.jobs):
            with self._task(job) as task:
                for turn in range(self._plan.repeat):
                    for contestant in in_turn(self._plan.contestants, turn):
                        self._run(task, contestant, turn)
                    yield
        for turn in range(self._plan.repeat if RECOVERY in self._plan.jobs else 0):
            for contestant in in_turn(self._plan.contestants, turn):
                self._recover(contestant, turn)
            yield

    def remember(self, figures: Mapping[str, Any]) -> None:
        """Take over what an earlier run found of the jobs that are not measured now.

        Raises KeyError, TypeError or AttributeError where this is not what a run has found.
        """
        origins = {job: Origin(**told) for job, told in figures.get("measured", {}).items()}
        for job, by_name in figures["runs"].items():
            if job not in self._plan.jobs:
                self.runs[job] = {name: [Ran(**run) for run in runs] for name, runs in by_name.items()}
                self.amounts[job] = figures["amounts"][job]
                self.earlier[job] = origins.get(job, UNKNOWN)
        if RECOVERY not in self._plan.jobs and figures["recovery"]:
            self.earlier[RECOVERY] = origins.get(RECOVERY, UNKNOWN)
            self.recovered = {name: [Recovered(**one) for one in each] for name, each in figures["recovery"].items()}

    def results(self) -> dict[str, dict[str, Figure]]:
        return {
            job: {name: figure_of(runs, self.amounts[job]) for name, runs in by_name.items()}
            for job, by_name in self.runs.items()
        }

    def _find_contestants(self) -> None:
        for contestant in self._plan.contestants:
            try:
                self._pythons[contestant.name] = python_of(contestant, self._telling)
            except NotInstalled as reason:
                self._missing[contestant.name] = f"cannot be installed: {reason}"
                self._telling(f"{contestant.shown} {self._missing[contestant.name]}")

    @contextmanager
    def _task(self, job: Job) -> Iterator[Task]:
        if job is not JSON:
            yield made_up(job, self._plan)
            return
        with scratch_folder() as folder:
            self._telling(f"writing {self._plan.megabytes} MB of JSON lines")
            events = write_events(folder, self._plan.megabytes)
            yield Task(job, events.lines, events.bytes, events.folder, events.counts)

    def _run(self, task: Task, contestant: Contestant, turn: int) -> None:
        self.amounts[task.job.name] = task.amount
        runs = self.runs.setdefault(task.job.name, {}).setdefault(contestant.name, [])
        known = self._missing.get(contestant.name) or contestant.lacks.get(task.job.name)
        if known is not None:
            runs.append(Ran(trouble=known))
            return
        with self._announced(task.job.name, contestant, turn) as title, scratch_folder() as folder:
            work = Work(task.job.name, task.tuples, folder, task.input)
            runs.append(run_once(contestant, self._pythons[contestant.name], work, task.counts, self._telling))
        self._telling(f"{title}: {in_words(runs[-1], task)}")

    def _recover(self, contestant: Contestant, turn: int) -> None:
        recovered = self.recovered.setdefault(contestant.name, [])
        if contestant.name in self._missing:
            recovered.append(Recovered(trouble=self._missing[contestant.name]))
            return
        seconds = _QUICK_RECOVERY_SECONDS if self._plan.quick else _RECOVERY_SECONDS
        with self._announced(RECOVERY, contestant, turn) as title, scratch_folder() as folder:
            work = Work(RECOVERY, _RECOVERY_RATE * seconds, folder, rate=_RECOVERY_RATE)
            recovered.append(kill_and_recover(contestant, self._pythons[contestant.name], work, self._telling))
        self._telling(f"{title}: {recovered[-1]}")

    @contextmanager
    def _announced(self, job: str, contestant: Contestant, turn: int) -> Iterator[str]:
        title = f"{job} {turn + 1}/{self._plan.repeat} {contestant.shown}"
        self._telling.begin(title)
        yield title


def in_turn(contestants: Sequence[Contestant], turn: int) -> list[Contestant]:
    """Each turn begins with the next of them: whoever is first finds the machine as the turn before has left it."""
    first = turn % len(contestants)
    return [*contestants[first:], *contestants[:first]]


def in_words(ran: Ran, task: Task) -> str:
    if ran.trouble is not None or not ran.seconds:
        return ran.trouble or "no time at all"
    return f"{ran.seconds:.2f} seconds, {rate(task.job.name, task.amount / ran.seconds)}"
