"""Measure workloads one after the other, each in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.bench.worker import Figures, Job
from penstock.bench.workloads import PACE, Workload
from penstock.chaos.life import Session
from penstock.errors import DeliveryError

_QUICK_SHARE = 0.25
"""Of the tuples of a workload, where it has to go quickly."""
_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True)
class Thoroughness:
    """How long everything is measured."""

    repetitions: int = 5
    paced_seconds: float = 20.0
    share: float = 1.0
    """Of the tuples of a workload."""

    @classmethod
    def quick(cls) -> Thoroughness:
        return cls(2, 8.0, _QUICK_SHARE)


def measure_workloads(
    chosen: Sequence[Workload], how: Thoroughness, tell: Callable[[str], None]
) -> Iterator[Figures]:
    """The figures of each workload, once it is measured; raises DeliveryError when one fails."""
    for number, each in enumerate(chosen, start=1):
        tell(f"{each.name}: {number} of {len(chosen)}")
        with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as folder:
            rate = float(PACE) if each.paced else None
            yield _measured(
                Job(each.name, folder, int(each.tuples * how.share), how.repetitions, rate, how.paced_seconds))


def _measured(job: Job) -> Figures:
    said = Path(job.folder) / "said"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.bench.worker", json.dumps(asdict(job))], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        finally:
            Session(process.pid).kill_all()
            process.wait()
    if process.returncode:
        raise DeliveryError(f"{job.workload} ended with {process.returncode}:\n{said.read_text()[-3000:]}")
    return Figures(**json.loads(out.strip().splitlines()[-1]))
