"""The watermark by which the tuples of an epoch are late: Spark's own, read from its offset log.

Spark notes with every micro-batch how far its watermark had come when it was begun, before any task of it runs. Whether
a tuple is late goes by the micro-batch before, for which a window may just have been emitted. So the answer depends on
the epochs before and on nothing else, and is the same when an epoch is done again.
"""

from __future__ import annotations

import json
from pathlib import Path

from penstock.spark.present_epoch import present_batch


def late_watermark_of_newest(state: Path) -> int:
    """For the micro-batch that is being planned, in milliseconds since 1970; `state` is the run's state folder."""
    logged = [int(entry.name) for entry in _offsets(state).iterdir() if entry.name.isdigit()]
    return _late_watermark(state, max(logged))


def late_watermark_of_task(state: Path) -> int:
    """For the micro-batch that the task at hand is part of."""
    return _late_watermark(state, present_batch())


def watermark_of_task(state: Path) -> int:
    """How far the epochs before have come, by which windows are closed in the task's micro-batch."""
    return _noted(_offsets(state) / str(present_batch()))


def _late_watermark(state: Path, batch: int) -> int:
    before = _offsets(state) / str(batch - 1)
    return _noted(before) if before.exists() else 0


def _noted(entry: Path) -> int:
    """What the second line of an entry, about the micro-batch as a whole, says of the watermark."""
    return int(json.loads(entry.read_text().splitlines()[1])["batchWatermarkMs"])


def _offsets(state: Path) -> Path:
    return state / "checkpoint" / "offsets"
