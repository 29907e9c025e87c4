from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.memory import INLINE_LIMIT, MemorySink
from penstock.errors import ConnectorError, TopologyError

from .sink_conformance import Rows, SinkConformance, some_rows, stage


def memory_sink(topology: str = "reach", name: str = "out") -> MemorySink:
    return MemorySink.configure(Place(topology, name, Path()), {"memory": True})


class TestMemorySink(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return memory_sink(str(folder))

    def visible(self, folder: Path) -> Rows:
        return MemorySink.rows(str(folder), "out")


def test_a_fresh_run_forgets_the_rows_of_the_last() -> None:
    sink = memory_sink()
    sink.open(fresh=True)
    sink.commit(0, [stage(sink, some_rows(0, 3))])
    sink.open(fresh=True)
    assert MemorySink.rows("reach", "out") == []
    sink.commit(0, [stage(sink, some_rows(5, 1))])
    assert MemorySink.rows("reach", "out") == some_rows(5, 1)


def test_sinks_do_not_see_each_others_rows() -> None:
    for sink in (memory_sink(name="a"), memory_sink(name="b")):
        sink.open(fresh=True)
        sink.commit(0, [stage(sink, some_rows(len(sink.name), 1))])
    memory_sink(name="a").open(fresh=True)
    assert MemorySink.rows("reach", "a") == []
    assert MemorySink.rows("reach", "b") == some_rows(1, 1)


def test_a_sink_that_was_never_opened_has_no_rows() -> None:
    assert MemorySink.rows("reach", "nobody") == []


def test_large_parts_wait_in_a_file_that_the_commit_removes() -> None:
    sink = memory_sink()
    sink.open(fresh=True)
    rows = [{"id": 1, "user": "x" * INLINE_LIMIT}]
    staged = stage(sink, rows)
    assert Path(staged.detail["file"]).is_file()
    sink.commit(0, [staged])
    assert MemorySink.rows("reach", "out") == rows
    assert not Path(staged.detail["file"]).exists()


def test_an_abort_removes_the_file_of_a_large_part() -> None:
    sink = memory_sink()
    staged = stage(sink, [{"id": 1, "user": "x" * INLINE_LIMIT}])
    sink.abort([staged])
    assert not Path(staged.detail["file"]).exists()


def test_a_part_on_another_machine_fails_the_whole_epoch_in_plain_words() -> None:
    sink = memory_sink()
    sink.open(fresh=True)
    gone = stage(sink, [{"id": 1, "user": "x" * INLINE_LIMIT}])
    Path(gone.detail["file"]).unlink()
    with pytest.raises(ConnectorError, match=r"not on the driver's machine.*use a file sink"):
        sink.commit(0, [stage(sink, some_rows(0, 1)), gone])
    assert MemorySink.rows("reach", "out") == []


def test_nested_and_temporal_values_come_back_as_python_values() -> None:
    sink = memory_sink()
    sink.open(fresh=True)
    schema = pa.schema([("day", pa.date32()), ("tags", pa.list_(pa.string())),
                        ("by", pa.map_(pa.string(), pa.int64()))])
    row = {"day": datetime.date(2024, 2, 29), "tags": ["a", None], "by": {"x": 1}}
    batch = pa.RecordBatch.from_pylist([{**row, "by": [("x", 1)]}], schema)
    sink.commit(0, [sink.stage(iter([batch]))])
    assert MemorySink.rows("reach", "out") == [row]


def test_a_value_after_memory_is_refused() -> None:
    with pytest.raises(TopologyError, match="sink 'out': memory takes no value"):
        MemorySink.configure(Place("reach", "out", Path()), {"memory": "ram"})
