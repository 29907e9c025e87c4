"""The measurements of the k-safety paper (figures 2 to 5), made with Penstock and put beside the paper's.

Each line of a figure is a topology at rising rates of input: how much of it is delivered, and after how long. The paper
measured a cluster of eight machines; here everything runs on this one, replicas included, so it is no race.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from penstock.bench.failover import agreed, checked
from penstock.bench.latency import Commit, latency_ms
from penstock.bench.topologies import topology_file
from penstock.chaos.life import PENSTOCK
from penstock.chaos.replica_trial import ReplicaTrial
from penstock.chaos.subject import Replicas
from penstock.chaos.trial import Scene, Ways
from penstock.runtime.state_folder import StateFolder

RATES = (25_000, 50_000, 100_000, 200_000)


@dataclass(frozen=True)
class Variant:
    """One topology as the paper ran it."""

    workload: str
    source: str
    parallelism: int
    """×1, ×2, ×3: how many tasks run at once."""
    k: int
    """How many failures are hidden."""
    paper: int | None = None
    """Tuples a second that the paper's could sustain, where its text says so."""

    def __str__(self) -> str:
        return f"×{self.parallelism}, k = {self.k}"


@dataclass(frozen=True)
class PaperLine:
    """What the paper measured of others, and nobody measures here."""

    workload: str
    name: str
    sustained: int
    """Tuples a second."""

    def __str__(self) -> str:
        return self.name


def _stateless(operators: int, parallelism: int, k: int, paper: int | None = None) -> Variant:
    return Variant(f"stateless-{operators}", "tuples", parallelism, k, paper)


def _stateful(parallelism: int, k: int, paper: int | None = None) -> Variant:
    return Variant("word-count", "words", parallelism, k, paper)


FIGURES: Mapping[int, tuple[Variant, ...]] = {
    2: (_stateless(2, 1, 1, 65_000), _stateless(2, 2, 1, 100_000), _stateless(2, 3, 1, 135_000),
        _stateless(2, 1, 0, 100_000)),
    3: (_stateless(2, 2, 1, 100_000), _stateless(2, 3, 1, 135_000), _stateless(2, 2, 2, 70_000),
        _stateless(2, 3, 2, 95_000)),
    4: (_stateless(3, 1, 1, 70_000), _stateless(3, 2, 1, 55_000), _stateless(3, 3, 1)),
    5: (_stateful(1, 1, 25_000), _stateful(2, 1, 40_000), _stateful(3, 1, 55_000), _stateful(2, 0)),
}
"""k = 0 of figure 2 is the paper's plain Storm without acking. For k = 2 the text says "approximately 30%" less."""

PAPER_LINES: Mapping[int, tuple[PaperLine, ...]] = {
    2: (PaperLine("stateless-2", "×1, Storm with acking", 15_000),),
    5: (PaperLine("word-count", "×1, Trident", 55_000),),
}
"""By figure."""

TITLES: Mapping[int, str] = {
    2: "Figure 2: stateless, one source and two operators",
    3: "Figure 3: stateless, for k = 1 and k = 2",
    4: "Figure 4: stateless, one source and three operators",
    5: "Figure 5: stateful word count, exactly once",
}


@dataclass(frozen=True)
class Point:
    """What came of one rate of input."""

    offered: float
    delivered: float
    """Tuples a second."""
    p50_ms: float


@dataclass(frozen=True)
class Pace:
    """How long each point is measured."""

    seconds: float = 40.0
    skipped: float = 20.0
    """Of them, while the JVM is cold."""


Tell = Callable[[str], None]


def variants(figures: Sequence[int]) -> list[Variant]:
    """Each of them once, though some are in two figures."""
    return list(dict.fromkeys(variant for figure in figures for variant in FIGURES[figure]))


def as_json(variant: Variant, points: Sequence[Point]) -> str:
    """What was measured of a variant, on a line."""
    return json.dumps({**asdict(variant), "points": [asdict(point) for point in points]})


def from_json(line: str) -> tuple[Variant, list[Point]]:
    """The same, with what is known of the paper now; raises ValueError for a variant that is in no figure."""
    fields = json.loads(line)
    points = [Point(**point) for point in fields.pop("points")]
    read = Variant(**fields)
    for known in variants(list(FIGURES)):
        if replace(read, paper=known.paper) == known:
            return known, points
    raise ValueError(f"{read.workload} {read} is in no figure")


def merged(before: Sequence[Point], new: Sequence[Point]) -> list[Point]:
    """All points by their rates, of each rate the new one."""
    by_rate = {point.offered: point for point in (*before, *new)}
    return [by_rate[rate] for rate in sorted(by_rate)]


def left_to_measure(
    wanted: Sequence[Variant], rates: Sequence[int], found: Mapping[Variant, Sequence[Point]]
) -> list[tuple[Variant, int]]:
    """What is wanted and not found yet: variants in their order, each with its rates."""
    known = {(variant, point.offered) for variant, points in found.items() for point in points}
    return [(variant, rate) for variant in wanted for rate in rates if (variant, rate) not in known]


def figures_of(found: Collection[Variant], wanted: Sequence[int]) -> list[int]:
    """The figures that can be shown: those that are wanted, as far as they are measured, and whole ones."""
    return [
        figure for figure, lines in FIGURES.items()
        if (figure in wanted and any(line in found for line in lines)) or all(line in found for line in lines)
    ]


def measure(
    wanted: Sequence[tuple[Variant, int]], pace: Pace, folder: Path, tell: Tell
) -> Iterator[tuple[Variant, Point]]:
    """The point of each variant and rate, once it is measured; raises DeliveryError when a run fails."""
    for number, (variant, rate) in enumerate(wanted, start=1):
        tell(f"{number} of {len(wanted)}: {variant.workload} {variant}, {rate:,} tuples/s")
        yield variant, _point(variant, rate, pace, folder / str(number))


def _point(variant: Variant, rate: int, pace: Pace, folder: Path) -> Point:
    sets = (f"sources.{variant.source}.rate={rate}", f"sources.{variant.source}.count={round(rate * pace.seconds)}")
    command = [*PENSTOCK, "run", str(topology_file(variant.workload)), "--supervised", "--json",
               "--master", f"local[{variant.parallelism}]", *(part for each in sets for part in ("--set", each))]
    watch = _Watch(folder / "run" / "state", variant.source)
    trial = ReplicaTrial(
        Ways(command, look=watch.look), folder / "run", folder / "logs", Replicas(variant.k + 1, 0.0))
    watch.trial = trial
    checked(trial.run())
    return point_of(watch.commits, rate, int(pace.skipped * rate))


def point_of(commits: Sequence[Commit], rate: float, skipped: int) -> Point:
    """Over the tuples from number `skipped` on."""
    before = [commit for commit in commits if commit.end <= skipped]
    after = commits[len(before) :]
    began = before[-1].at_ms if before else commits[0].since_ms
    first = before[-1].end if before else 0
    seconds = (after[-1].at_ms - began) / 1000
    (p50, *_) = latency_ms(after, rate, skipped)
    return Point(rate, (after[-1].end - first) / seconds, p50)


class _Watch:
    """Looks at a trial while it runs: when the tuples of each epoch were delivered."""

    def __init__(self, state: Path, source: str) -> None:
        self._state = StateFolder(state)
        self._source = source
        self.trial: ReplicaTrial | None = None
        self.commits: list[Commit] = []
        self._epoch = 0

    def look(self, scene: Scene) -> None:
        assert self.trial is not None
        if scene.epoch <= self._epoch:
            return
        self._epoch = scene.epoch
        moment = self.trial.delivered[-1][0] + time.time() - time.monotonic()
        record = agreed(self._state, scene.epoch)
        if record is not None:
            end = record.ends[self._source]
            first = self.commits[-1].end if self.commits else 0
            self.commits.append(Commit(first, end["row"], end["since"], moment * 1000))
