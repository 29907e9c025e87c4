"""How the cost of a run grows with its tuples, and with the operators that they pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from penstock import Topology
from penstock.runtime.run import Run, RunSettings

WARM_UP_TUPLES = 5_000_000


@dataclass(frozen=True)
class Size:
    """One run, by what is varied."""

    tuples: int
    operators: int


@dataclass(frozen=True)
class Took:
    """How long a run took, from the start of its query to its end; the median of some."""

    size: Size
    seconds: float

    @property
    def tuples_per_second(self) -> float:
        return self.size.tuples / self.seconds


def chain(size: Size, folder: Path) -> Topology:
    """Tuples of 256 bytes that pass so many operators, to a file."""
    columns = {"id": "sequence", "payload": "string(256)"}
    stream = Topology("scaling").source("tuples", generator=columns, count=size.tuples)
    for number in range(size.operators - 1):
        stream = stream.filter(f"length(payload) > {number}")
    return stream.select("id").sink("out", file=str(folder / "out.csv")).with_folder(folder)


def measure_sizes(
    spark: SparkSession, sizes: Sequence[Size], repetitions: int, folder: Path, tell: Callable[[str], None]
) -> Iterator[Took]:
    """Each size in turn, after a run that warms up."""
    tell("warming up")
    _run(spark, chain(Size(WARM_UP_TUPLES, max(size.operators for size in sizes)), folder), folder)
    for number, size in enumerate(sizes, start=1):
        tell(f"{number} of {len(sizes)}: {size.tuples:,} tuples, {size.operators} operators")
        topology = chain(size, folder)
        yield Took(size, median(_run(spark, topology, folder) for _ in range(repetitions)))


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """What does not grow, and by how much the rest grows: `y = fixed + x * each` through the first and last point."""
    (x, y), (further, later) = points[0], points[-1]
    each = (later - y) / (further - x) if further != x else 0.0
    return y - x * each, each


def _run(spark: SparkSession, topology: Topology, folder: Path) -> float:
    run = Run(topology, RunSettings(state=folder / "state", fresh=True))
    began = time.monotonic()
    run.start(spark)
    run.wait()
    return time.monotonic() - began
