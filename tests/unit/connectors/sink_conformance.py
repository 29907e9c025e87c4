"""What every sink promises, whatever it writes to: say how to make and read it in a subclass."""

from __future__ import annotations

import abc
import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import SinkConnector, Staged

Rows = list[dict[str, Any]]

COLUMNS = ("id", "user")


def some_rows(first: int, count: int) -> Rows:
    return [{"id": number, "user": f"jürgen, \"{number}\""} for number in range(first, first + count)]


def batch_for(sink: SinkConnector, rows: Rows) -> pa.RecordBatch:
    """The rows as the runtime hands them to `stage`."""
    if sink.encoding == "columns":
        return pa.RecordBatch.from_pylist(rows, pa.schema([("id", pa.int64()), ("user", pa.string())]))
    lines = [json.dumps(row) + "\n" if sink.encoding == "json" else csv_line(row) for row in rows]
    return pa.RecordBatch.from_pydict({"line": pa.array(lines, pa.string())})


def csv_line(row: dict[str, Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row.values())
    return text.getvalue()


def on_executor(sink: SinkConnector) -> SinkConnector:
    """The sink as another process has it."""
    copy: SinkConnector = pickle.loads(pickle.dumps(sink))
    return copy


def stage(sink: SinkConnector, rows: Rows, batch_rows: int = 3) -> Staged:
    """Stage rows in a task of another process, and bring the answer back as the runtime does: as JSON."""
    slices = (rows[start:start + batch_rows] for start in range(0, len(rows), batch_rows))
    staged = on_executor(sink).stage(batch_for(sink, part) for part in slices)
    return Staged(staged.rows, json.loads(json.dumps(staged.detail)))


class SinkConformance(abc.ABC):
    """The contract of `SinkConnector`, as tests."""

    @abc.abstractmethod
    def make(self, folder: Path) -> SinkConnector:
        """A sink that has not been opened."""

    @abc.abstractmethod
    def visible(self, folder: Path) -> Rows:
        """What a reader of the output sees."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkConnector:
        made = self.make(tmp_path)
        made.open(fresh=True)
        return made

    def test_rows_are_invisible_before_the_commit(self, sink: SinkConnector, tmp_path: Path) -> None:
        sink.commit(0, [stage(sink, some_rows(0, 2))])
        staged = stage(sink, some_rows(2, 5))
        assert self.visible(tmp_path) == some_rows(0, 2)
        sink.commit(1, [staged])
        assert self.visible(tmp_path) == some_rows(0, 7)

    def test_the_number_of_staged_rows_is_told(self, sink: SinkConnector) -> None:
        assert stage(sink, some_rows(0, 7)).rows == 7

    def test_a_second_commit_of_an_epoch_changes_nothing(self, sink: SinkConnector, tmp_path: Path) -> None:
        staged = [stage(sink, some_rows(0, 4))]
        sink.commit(3, staged)
        sink.commit(3, staged)
        sink.commit(3, [stage(sink, some_rows(0, 4))])
        assert self.visible(tmp_path) == some_rows(0, 4)

    def test_an_epoch_before_the_last_changes_nothing(self, sink: SinkConnector, tmp_path: Path) -> None:
        for epoch in (0, 1, 2, 1):
            sink.commit(epoch, [stage(sink, some_rows(epoch, 1))])
        assert self.visible(tmp_path) == some_rows(0, 3)

    def test_aborted_rows_never_appear(self, sink: SinkConnector, tmp_path: Path) -> None:
        retried = stage(sink, some_rows(0, 3))
        sink.abort([retried])
        sink.abort([retried])
        sink.commit(0, [stage(sink, some_rows(10, 3))])
        assert self.visible(tmp_path) == some_rows(10, 3)

    def test_epochs_appear_in_order(self, sink: SinkConnector, tmp_path: Path) -> None:
        for epoch in range(12):
            sink.commit(epoch, [stage(sink, some_rows(epoch * 2, 2))])
        assert self.visible(tmp_path) == some_rows(0, 24)

    def test_epochs_that_nobody_committed_may_be_missing(self, sink: SinkConnector, tmp_path: Path) -> None:
        for epoch in (4, 9):
            sink.commit(epoch, [stage(sink, some_rows(epoch, 1))])
        assert self.visible(tmp_path) == some_rows(4, 1) + some_rows(9, 1)

    @pytest.mark.parametrize("tasks", [0, 1, 2])
    def test_an_epoch_may_be_empty(self, sink: SinkConnector, tmp_path: Path, tasks: int) -> None:
        sink.commit(0, [stage(sink, []) for _ in range(tasks)])
        assert self.visible(tmp_path) == []
        sink.commit(1, [stage(sink, some_rows(0, 1)), *(stage(sink, []) for _ in range(tasks))])
        assert self.visible(tmp_path) == some_rows(0, 1)

    def test_batches_without_rows_are_nothing(self, sink: SinkConnector, tmp_path: Path) -> None:
        empty = batch_for(sink, [])
        staged = on_executor(sink).stage(iter([empty, batch_for(sink, some_rows(0, 2)), empty]))
        assert staged.rows == 2
        sink.commit(0, [staged, on_executor(sink).stage(iter([empty]))])
        assert self.visible(tmp_path) == some_rows(0, 2)

    def test_many_parts_appear_in_task_order(self, sink: SinkConnector, tmp_path: Path) -> None:
        backwards = [stage(sink, some_rows(task * 5, 5)) for task in reversed(range(8))]
        sink.commit(0, list(reversed(backwards)))
        assert self.visible(tmp_path) == some_rows(0, 40)

    def test_it_travels_by_pickle(self, tmp_path: Path) -> None:
        made = self.make(tmp_path)
        assert on_executor(made) == made

    def test_a_run_that_continues_keeps_what_is_there(self, sink: SinkConnector, tmp_path: Path) -> None:
        sink.commit(0, [stage(sink, some_rows(0, 2))])
        sink.close()
        again = self.make(tmp_path)
        again.open(fresh=False)
        again.commit(0, [stage(again, some_rows(0, 2))])
        again.commit(1, [stage(again, some_rows(2, 2))])
        assert self.visible(tmp_path) == some_rows(0, 4)

    def test_closing_twice_is_harmless(self, sink: SinkConnector, tmp_path: Path) -> None:
        sink.commit(0, [stage(sink, some_rows(0, 2))])
        sink.close()
        sink.close()
        assert self.visible(tmp_path) == some_rows(0, 2)
