"""Which epoch a task belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from penstock.spark.present_epoch import present_epoch
from penstock.topology.context import PresentEpoch


@pytest.fixture
def in_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(getLocalProperty=lambda name: {"streaming.sql.batchId": "7"}.get(name))
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: task)


@pytest.mark.usefixtures("in_batch")
def test_it_is_the_one_that_the_offset_log_has_for_the_task_s_micro_batch(tmp_path: Path) -> None:
    offset = json.dumps({"epoch": 12, "time_ms": 5000, "ends": "{}", "tuples": "{}", "backlog": 0, "last": True})
    entry = tmp_path / "checkpoint/offsets/7"
    entry.parent.mkdir(parents=True)
    entry.write_text(f"v1\n{{}}\n-\n{offset}")
    assert present_epoch(tmp_path) == PresentEpoch(12, 5000, True)


def test_outside_of_a_task_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="only a task"):
        present_epoch(tmp_path)
