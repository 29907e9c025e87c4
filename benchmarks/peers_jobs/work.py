"""What a job of a peer is told, and how it tells what came of it. Needs nothing but Python.

A job is run as `JOB.py WORK`, where WORK is JSON. It writes its rows under `Work.out`, so that they are on disk when it
ends, and prints the seconds that it took as its last line. All contestants make the same tuples: number n has the
word of letter n · 7919 mod 26, and belongs to user n · 7919 mod 10,000 with an amount of n mod 100.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PARALLELISM = 2
"""Tasks, threads or processes: the same for all."""
CHECKPOINT_SECONDS = 1
"""How often a system that keeps its state by the clock has to do so."""
JVM_MEMORY = "1g"
WORD_BYTES = 256
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STEP = 7919
"""A prime, so that words and users come in no order."""
USERS = 10_000
AMOUNTS = 100
WARM_UP_PART = 4
"""One in so many tuples is enough for a JVM to compile what it runs."""


@dataclass(frozen=True)
class Work:
    """One run of one job."""

    job: str
    tuples: int
    folder: Path
    """For whatever the job writes."""
    input: Path | None = None
    """A folder of files with JSON lines; beside it is `few`, with some of them."""
    rate: int | None = None
    """Tuples a second; none: as fast as they are taken."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def warm_up(self) -> Work:
        """The same job with less to do, in a folder of its own."""
        less = None if self.input is None else self.input.with_name("few")
        return replace(self, tuples=self.tuples // WARM_UP_PART, folder=self.folder / "warm-up", input=less)

    def written(self) -> str:
        return json.dumps(asdict(self), default=str)


def read_work(written: str) -> Work:
    told = json.loads(written)
    return Work(
        told["job"], told["tuples"], Path(told["folder"]), Path(told["input"]) if told["input"] else None, told["rate"]
    )


def report(seconds: float) -> None:
    sys.stdout.write("\n" + json.dumps({"seconds": seconds}) + "\n")
    sys.stdout.flush()


def word(number: int) -> str:
    return LETTERS[number * STEP % len(LETTERS)] * WORD_BYTES
