"""Which epoch a task belongs to. A task knows the micro-batch, and Spark's offset log says which epoch that is."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.topology.context import PresentEpoch

_BATCH = "streaming.sql.batchId"
_RUN = "spark.jobGroup.id"
"""The jobs of a streaming query are the group of its run."""


def present_epoch(state: Path) -> PresentEpoch:
    """The epoch that the task at hand is part of; `state` is the run's state folder."""
    offset = json.loads(present_offset(state))
    return PresentEpoch(offset["epoch"], offset["time_ms"], offset["last"])


def present_offset(state: Path) -> str:
    """The offset of that epoch, as Spark has logged it; see `offset_epoch`."""
    return _logged(state / "checkpoint" / "offsets" / str(present_batch()))


def present_batch() -> int:
    """The micro-batch that the task at hand is part of."""
    return int(_of_task(_BATCH))


def present_run() -> str:
    """The id of the query's run that the task at hand is part of: another one after every start."""
    return _of_task(_RUN)


def _of_task(name: str) -> str:
    from pyspark import TaskContext

    task = TaskContext.get()
    value = None if task is None else task.getLocalProperty(name)
    if value is None:
        raise RuntimeError("only a task of a running topology has an epoch")
    return value


def _logged(entry: Path) -> str:
    """An offset in an entry of Spark's offset log: a version, the batch's metadata, then a line for every source.

    All sources of a micro-batch are at the same epoch. The entry is there before the batch's first task.
    """
    for line in entry.read_text().splitlines()[2:]:
        if line != "-":
            return line
    raise RuntimeError(f"{entry}: no source in this entry of the offset log")
