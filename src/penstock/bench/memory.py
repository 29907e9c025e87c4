"""How much memory a job's processes take together, looked at five times a second from outside.

A job leads a session of its own, so everything it has started is found by the session's number, also what has another
parent by now. Memory is the proportional set size: of pages that processes share, as forked workers do, each counts
its part.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.epochs.moments import processes_of

INTERVAL_SECONDS = 0.2


@dataclass(frozen=True)
class Sample:
    """One look at all processes of a job."""

    time: float
    """By the monotonic clock, which all processes of a machine share."""
    jvm_mb: float
    python_mb: float

    @property
    def total_mb(self) -> float:
        return self.jvm_mb + self.python_mb


class MemorySampler:
    """Samples a session from `with` on until its end."""

    def __init__(self, session: int) -> None:
        self.samples: list[Sample] = []
        self._session = session
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def peaks(self) -> dict[str, float]:
        """The most at any moment: together, and of either kind."""
        return {
            "peak_mb": max(sample.total_mb for sample in self.samples),
            "peak_jvm_mb": max(sample.jvm_mb for sample in self.samples),
            "peak_python_mb": max(sample.python_mb for sample in self.samples),
        }

    def peak_between(self, began: float, ended: float) -> float:
        """The most between two moments."""
        return max(sample.total_mb for sample in self.samples if began <= sample.time <= ended)

    def _run(self) -> None:
        while True:
            self.samples.append(take_sample(self._session))
            if self._enough.wait(INTERVAL_SECONDS):
                return


def take_sample(session: int) -> Sample:
    jvm = python = 0.0
    for process in processes_of(session):
        # Nothing else: a thread of the JVM that is about to start a program is listed as a process that has the JVM's
        # memory, under the thread's name.
        if process.name == "java":
            jvm += proportional_mb(process.pid)
        elif process.name.startswith(("python", "penstock")):
            python += proportional_mb(process.pid)
    return Sample(time.monotonic(), jvm, python)


def proportional_mb(pid: int) -> float:
    """The proportional set size of a process; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
