"""Who is measured, and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PENSTOCK = "penstock"


@dataclass(frozen=True)
class Contestant:
    """A stream processor with a program of its own in `peers_jobs`."""

    name: str
    shown: str
    requirements: tuple[str, ...] = ()
    """What pip installs for it; nothing: it runs where this runs."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """The jobs that it has no means for, and why."""

    @property
    def program(self) -> str:
        return f"{self.name}_job.py"


@dataclass(frozen=True)
class Job:
    """What all contestants do."""

    name: str
    shown: str
    tuples: int
    quick_tuples: int


CONTESTANTS = (
    Contestant(PENSTOCK, "Penstock"),
    Contestant("pyflink", "PyFlink 2.3.0", ("apache-flink==2.3.0",)),
    Contestant(
        "bytewax", "Bytewax 0.21.1", ("bytewax==0.21.1",), {"batch-function": "its operators have no Arrow batches"}
    ),
    Contestant(
        "pathway", "Pathway 0.33.0", ("pathway==0.33.0",), {"batch-function": "its functions take no Arrow batches"}
    ),
    Contestant("pyspark", "PySpark 4.3.0 by hand", ("pyspark==4.3.0", "pyarrow>=18", "pandas>=2.2,<3")),
)

STATELESS = Job("stateless", "W1, stateless: three stages, tuples of 256 bytes", 8_000_000, 2_000_000)
WORD_COUNT = Job("word-count", "W2, word count: 26 words of 256 bytes, durable state", 8_000_000, 2_000_000)
FUNCTION = Job("function", "W3, a Python function for each tuple", 12_000_000, 500_000)
BATCH_FUNCTION = Job("batch-function", "W3, a Python function for each Arrow batch", 24_000_000, 2_000_000)
JSON = Job("json", "W4, JSON lines: parsed, filtered, counted per key", 0, 0)
"""Its tuples are those of its files."""
JOBS = (STATELESS, WORD_COUNT, FUNCTION, BATCH_FUNCTION, JSON)
RECOVERY = "recovery"
"""A word count that is killed and started again."""


def contestant(name: str) -> Contestant:
    return next(each for each in CONTESTANTS if each.name == name)
