"""What `penstock bench` runs: each workload is a topology in `topologies/`, with so many tuples and at such a pace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.bench.goals import COUNTED_WORDS, NATIVE, WITH_PYTHON, LatencyGoal
from penstock.bench.topologies import topology_file
from penstock.connectors.registry import catalogue
from penstock.errors import TopologyError
from penstock.topology.loading import load_topology
from penstock.topology.model import Topology

PACE = 10_000
"""Tuples a second, where latency is measured."""


@dataclass(frozen=True)
class Workload:
    """One topology to measure."""

    name: str
    tuples: int
    """Without a pace; so many that a run takes some seconds."""
    source: str = "events"
    """Whose tuples are counted."""
    paced: bool = True
    """Whether latency is measured as well, at a steady pace."""
    quick: bool = False
    """Whether `--quick` has it."""
    goal: LatencyGoal = NATIVE
    """At that pace."""

    def topology(self, folder: Path, tuples: int, rate: float | None = None) -> Topology:
        """As it is to be run in a folder, with so many tuples."""
        sets = {f"sources.{self.source}.count": str(tuples)}
        if rate is not None:
            sets[f"sources.{self.source}.rate"] = f"{rate:g}"
        topology, problems = load_topology(topology_file(self.name), catalogue(), sets)
        if topology is None:
            raise TopologyError(f"{self.name}: {'; '.join(map(str, problems))}")
        return topology.with_folder(folder)


_NEXMARK = ("q0", "q1", "q2", "q3", "q5", "q7", "q8", "q11", "q12", "q13", "q18", "q19")
WORKLOADS = (
    Workload("stateless-2", 4_000_000, "tuples"),
    Workload("stateless-3", 4_000_000, "tuples", quick=True),
    Workload("word-count", 10_000_000, "words", quick=True, goal=COUNTED_WORDS),
    Workload("yahoo", 10_000_000),
    Workload("custom-tuple", 2_000_000, quick=True, goal=WITH_PYTHON),
    Workload("custom-batch", 5_000_000, quick=True, goal=WITH_PYTHON),
    Workload("custom-bolt", 1_000_000, goal=WITH_PYTHON),
    *(Workload(f"nexmark-{query}", 5_000_000, paced=query in ("q0", "q5")) for query in _NEXMARK),
)


def workload(name: str) -> Workload:
    return next(each for each in WORKLOADS if each.name == name)


def write_tables(folder: Path) -> None:
    """The files in which some topologies look things up."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ads.csv").write_text("".join(f"{ad},{ad // 10}\n" for ad in range(1000)))
    (folder / "side.csv").write_text("".join(f"{key},value {key}\n" for key in range(10_000)))
