"""The watermark by which tuples are late is that of the micro-batch before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from penstock.spark.late_watermark import late_watermark_of_newest, late_watermark_of_task, watermark_of_task


@pytest.fixture
def state(tmp_path: Path) -> Path:
    offsets = tmp_path / "checkpoint/offsets"
    offsets.mkdir(parents=True)
    for batch in (8, 9, 10):
        (offsets / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":{batch * 1000},"conf":{{}}}}\n{{}}')
    (offsets / ".11.tmp").write_text("half written")
    return tmp_path


def test_of_the_epoch_that_is_being_planned_it_is_that_of_the_last_but_one_entry(state: Path) -> None:
    assert late_watermark_of_newest(state) == 9000


def test_before_the_first_micro_batch_nothing_has_been_seen(state: Path) -> None:
    for batch in (9, 10):
        (state / "checkpoint/offsets" / str(batch)).unlink()
    assert late_watermark_of_newest(state) == 0


def test_a_task_knows_its_own_micro_batch(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(getLocalProperty=lambda name: {"streaming.sql.batchId": "9"}.get(name))
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: task)
    assert late_watermark_of_task(state) == 8000
    assert watermark_of_task(state) == 9000
