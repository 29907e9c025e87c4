"""How the cost of a run grows with its tuples, and with the operators that they pass."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, median

from pyspark.sql import SparkSession

from penstock import Topology
from penstock.runtime.run import Run, RunSettings

WARM_UP_TUPLES = 5_000_000
CHAIN_TUPLES = 10_000_000
"""Where the number of operators is varied."""
CHAIN_OPERATORS = 3
"""Where the number of tuples is."""
WITHIN = 0.2
"""By how much less than the most tuples a second and core there may be."""
SHARE_OF_OPERATOR = 0.05
"""Of the whole, for each further operator."""

_PIECE = 16


@dataclass(frozen=True)
class Size:
    """One run, by what is varied."""

    tuples: int
    operators: int


ONE_TUPLE = Size(1, CHAIN_OPERATORS)
"""It takes what does not grow."""

Found = Mapping[Size, Sequence[float]]
"""How long each run took, from the start of its query to its end."""


def chain(size: Size, folder: Path) -> Topology:
    """Tuples of 256 bytes that pass so many operators, to a file.

    Filters look at a part of the payload each, and selects have a hash of the one before and of all the payload:
    however Spark puts them together, each is computed for every tuple, and none is without effect on the output.
    """
    columns = {"id": "sequence", "payload": "string(256)", "mark": "int(0, 9)"}
    stream = Topology("scaling").source("tuples", generator=columns, count=size.tuples)
    for number in range(size.operators - 1):
        if number % 2:
            stream = stream.select("id", "payload", "hash(payload, mark) as mark")
        else:
            stream = stream.filter(f"substr(payload, {1 + _PIECE * (number // 2)}, {_PIECE}) <> 'none'")
    ended = stream.select("id", "hash(payload, mark) as mark")
    return ended.sink("out", file=str(folder / "out.csv")).with_folder(folder)


def measure_sizes(
    spark: SparkSession, wanted: Sequence[Size], folder: Path, tell: Callable[[str], None]
) -> Iterator[tuple[Size, float]]:
    """The seconds of each run, after one that warms up."""
    tell("warming up")
    _run(spark, chain(Size(WARM_UP_TUPLES, max(size.operators for size in wanted)), folder), folder)
    for number, size in enumerate(wanted, start=1):
        tell(f"{number} of {len(wanted)}: {size.tuples:,} tuples, {size.operators} operators")
        yield size, _run(spark, chain(size, folder), folder)


def left_to_measure(sizes: Sequence[Size], repetitions: int, found: Found) -> list[Size]:
    """Every size once, then every size again, without as many of the first turns as are found of it."""
    return [size for turn in range(repetitions) for size in sizes if turn >= len(found.get(size, ()))]


def run_in(line: str) -> tuple[Size, float]:
    """A run as `as_json` wrote it."""
    fields = json.loads(line)
    return Size(int(fields["tuples"]), int(fields["operators"])), float(fields["seconds"])


def as_json(size: Size, seconds: float) -> str:
    return json.dumps({**asdict(size), "seconds": seconds})


def by_tuples(found: Found) -> dict[int, float]:
    """Seconds by the number of tuples."""
    return {size.tuples: median(found[size]) for size in sorted(found, key=lambda each: each.tuples)
            if size.operators == CHAIN_OPERATORS and size != ONE_TUPLE}  # fmt: skip


def by_operators(found: Found) -> dict[int, float]:
    """Seconds by the number of operators."""
    return {size.operators: median(found[size]) for size in sorted(found, key=lambda each: each.operators)
            if size.tuples == CHAIN_TUPLES}  # fmt: skip


def fixed_seconds(found: Found) -> float:
    """What a run takes however few its tuples are, by one that has a single one."""
    return median(found[ONE_TUPLE])


def per_core(seconds: Mapping[int, float], cores: int, without: float = 0.0) -> dict[int, float]:
    """Tuples a second on each core, by the number of tuples; `without` so many seconds of each run."""
    return {tuples: tuples / max(each - without, 1e-9) / cores for tuples, each in seconds.items()}


def spread(rates: Mapping[int, float]) -> float:
    """How much less the least is than the most, as a share of it."""
    return 1 - min(rates.values()) / max(rates.values())


def operator_share(seconds: Mapping[int, float]) -> float:
    """What a further operator takes, of the whole time of the shortest chain; by a line through all chains."""
    fitted = linear_regression(list(seconds), list(seconds.values()))
    return fitted.slope / seconds[min(seconds)]


def steps(seconds: Mapping[int, float]) -> dict[int, float]:
    """For each chain but the shortest: what each operator more than in the one before took, of the whole."""
    chains = sorted(seconds.items())
    return {
        operators: (took - before) / (operators - fewer) / took
        for (fewer, before), (operators, took) in pairwise(chains)
    }


def _run(spark: SparkSession, topology: Topology, folder: Path) -> float:
    run = Run(topology, RunSettings(state=folder / "state", fresh=True))
    began = time.monotonic()
    run.start(spark)
    run.wait()
    return time.monotonic() - began
