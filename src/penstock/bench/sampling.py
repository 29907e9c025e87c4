"""How much memory a job's processes take together, and how long they work, looked at from outside.

Their processor time is looked at five times a second, as what nobody has seen of a process that is gone may be lost;
memory less often, as the system walks through all pages of a process to tell it. A job leads a session of its own, so
everything it has started is found by the session's number, also what has another parent by now. Memory is the
proportional set size: of pages that processes share, as forked workers do, each counts its part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.processor_time import ProcessorTime
from penstock.epochs.moments import TICKS_PER_SECOND, Process, processes_of

INTERVAL_SECONDS = 0.2
MEMORY_SECONDS = 1.0
"""Where memory is not all that is measured: a look at it takes processor time from what is."""


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


class ProcessSampler:
    """Samples a session from `with` on until its end; looks at memory so many seconds apart."""

    def __init__(self, session: int, memory_seconds: float = MEMORY_SECONDS) -> None:
        self.samples: list[Sample] = []
        self._session = session
        self._time = ProcessorTime()
        self._looking = threading.Lock()
        self._memory_seconds = memory_seconds
        self._memory_due = 0.0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> ProcessSampler:
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

    def worked_seconds(self) -> float:
        """The processor time of all processes together until now, also of those that are gone."""
        with self._looking:
            self._time.look(processes_of(self._session))
            return self._time.ticks() / TICKS_PER_SECOND

    def _look(self) -> None:
        with self._looking:
            alive = processes_of(self._session)
            self._time.look(alive)
        if time.monotonic() >= self._memory_due:
            self.samples.append(sample_of(alive))
            self._memory_due = self.samples[-1].time + self._memory_seconds

    def _run(self) -> None:
        while True:
            self._look()
            if self._enough.wait(INTERVAL_SECONDS):
                return


def sample_of(alive: Iterable[Process]) -> Sample:
    jvm = python = 0.0
    for process in alive:
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
