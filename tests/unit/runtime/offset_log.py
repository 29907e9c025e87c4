"""Write the logs of a checkpoint as Spark does: a version, its own settings, then one offset for each source."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.epochs.record import EpochRecord
from penstock.spark.epoch_source import _offset


def write_offsets(checkpoint: Path, batch: int, record: EpochRecord) -> Path:
    """The micro-batch `batch` is begun: it is this epoch."""
    settings = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": record.time_ms, "conf": {}})
    sources = [json.dumps(_offset(record))] * max(len(record.ends), 1)
    return _write(checkpoint / "offsets" / str(batch), ["v1", settings, *sources])


def write_commit(checkpoint: Path, batch: int) -> Path:
    """The micro-batch `batch` is done."""
    return _write(checkpoint / "commits" / str(batch), ["v1", '{"nextBatchWatermarkMs":0}'])


def _write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return path
