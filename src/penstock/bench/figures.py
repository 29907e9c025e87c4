"""What was measured of one workload, and how it is kept between two runs of the tool. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Figures:
    """What was measured of one workload."""

    workload: str
    tuples: int
    seconds: Sequence[float]
    """Of each run without a pace, from the start of its query to its last commit."""
    cpu_seconds: Sequence[float]
    """Of all processes together, in each of these runs."""
    peak_mb: float
    """Of all processes together, at any time."""
    rate: float | None
    latency_ms: Sequence[Sequence[float]]
    """Of each run at that rate, by `latency.PERCENTILES`; none where latency is not measured."""
    date: str = ""
    """When it was measured."""
    warm: bool = True
    """Whether Java had compiled everything before latency was measured: else no goal is judged by it."""

    @property
    def tuples_per_second(self) -> float:
        return self.tuples / median(self.seconds)

    @property
    def cpu_per_million(self) -> float:
        """Seconds of processor time."""
        return median(self.cpu_seconds) / self.tuples * 1e6

    @property
    def latency(self) -> list[float]:
        """Each percentile, the median of the runs."""
        return [median(each) for each in zip(*self.latency_ms, strict=True)]

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Figures:
        return cls(**json.loads(line))


def put_in(found: Sequence[Figures], new: Figures, order: Sequence[str]) -> list[Figures]:
    """With what was measured last of its workload, in this order."""
    others = [one for one in found if one.workload != new.workload]
    return sorted([*others, new], key=lambda one: order.index(one.workload))
