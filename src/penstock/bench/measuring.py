"""Measure workloads one after the other, each in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.bench.figures import Figures
from penstock.bench.workloads import PACE, Workload
from penstock.chaos.life import Session
from penstock.errors import DeliveryError

_QUICK_SHARE = 0.25
"""Of the tuples of a workload, where it has to go quickly."""
_PATIENCE_SECONDS = 1800.0
_WARM_UP_SECONDS = 60.0
"""Java compiles what small epochs do for about a minute."""


@dataclass(frozen=True)
class Pace:
    """How latency is measured: at so many tuples a second, some times."""

    rate: float = float(PACE)
    runs: int = 3
    seconds: float = 20.0
    """Of each run."""
    warm_up: float = _WARM_UP_SECONDS
    """Seconds at the same pace before them, unmeasured."""

    @property
    def warms_up(self) -> bool:
        """Whether that is long enough for latency to be what it stays."""
        return self.warm_up >= _WARM_UP_SECONDS


@dataclass(frozen=True)
class Thoroughness:
    """How long everything is measured."""

    repetitions: int = 5
    share: float = 1.0
    """Of the tuples of a workload."""
    pace: Pace = Pace()

    @classmethod
    def quick(cls) -> Thoroughness:
        return cls(2, _QUICK_SHARE, Pace(runs=1, seconds=8.0, warm_up=6.0))


@dataclass(frozen=True)
class Job:
    """What a worker is to measure, and where to put what it writes."""

    workload: str
    folder: str
    tuples: int
    repetitions: int
    pace: Pace | None

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        fields = json.loads(text)
        pace = fields.pop("pace")
        return cls(**fields, pace=None if pace is None else Pace(**pace))


def measure_workloads(
    chosen: Sequence[Workload], how: Thoroughness, tell: Callable[[str], None]
) -> Iterator[Figures]:
    """The figures of each workload, once it is measured; raises DeliveryError when one fails."""
    for number, each in enumerate(chosen, start=1):
        tell(f"{each.name}: {number} of {len(chosen)}")
        with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as folder:
            pace = how.pace if each.paced else None
            yield measured(Job(each.name, folder, int(each.tuples * how.share), how.repetitions, pace))


def measured(job: Job) -> Figures:
    """By a worker, which leads a session of its own and is gone afterwards with all it has started."""
    said = Path(job.folder) / "said"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.bench.worker", job.as_json()], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise DeliveryError(f"{job.workload} took more than {_PATIENCE_SECONDS / 60:.0f} minutes:\n"
                                f"{said.read_text()[-3000:]}") from None
        finally:
            Session(process.pid).kill_all()
            process.wait()
    if process.returncode:
        raise DeliveryError(f"{job.workload} ended with {process.returncode}:\n{said.read_text()[-3000:]}")
    figures = Figures.from_json(out.strip().splitlines()[-1])
    warm = job.pace is None or job.pace.warms_up
    return replace(figures, date=f"{datetime.now(UTC):%Y-%m-%d}", warm=warm)
