from __future__ import annotations

import datetime
import io
import json
import math
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.console import ConsoleSink, EpochRows
from penstock.connectors.memory import INLINE_LIMIT, rows_of
from penstock.errors import ConnectorError, TopologyError

from .sink_conformance import Rows, SinkConformance, on_executor, some_rows, stage


def console_sink(**options: Any) -> ConsoleSink:
    sink = ConsoleSink.configure(Place("reach", "out", Path()), {"console": True, **options})
    sink.open(fresh=True)
    return sink


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestConsoleSink(SinkConformance):
    shown: ClassVar[dict[Path, Rows]] = {}

    def make(self, folder: Path) -> SinkConnector:
        def show(epoch: EpochRows) -> None:
            self.shown.setdefault(folder, []).extend(rows_of(epoch.rows))

        sink = ConsoleSink.configure(Place(str(folder), "out", folder), {"console": None, "limit": 1000})
        return sink.writing_to(show)

    def visible(self, folder: Path) -> Rows:
        return self.shown.get(folder, [])


def test_a_pipe_gets_json_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    sink = console_sink(limit=2)
    sink.commit(0, [stage(sink, some_rows(0, 5))])
    printed = capsys.readouterr()
    assert [json.loads(line) for line in printed.out.splitlines()] == some_rows(0, 2)
    assert "jürgen" in printed.out
    assert printed.err == "out, epoch 0: 3 more rows\n"


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    sink = console_sink(limit=2)
    sink.commit(7, [stage(sink, [{"id": 1, "user": "[bold]ann"}, *some_rows(2, 3)])])
    shown = terminal.getvalue()
    assert "out, epoch 7" in shown
    assert "[bold]ann" in shown
    assert "… 2 more rows" in shown


@pytest.mark.parametrize(("format", "sign"), [("table", "┃"), ("json", '{"id": 0')])
def test_the_format_can_be_chosen(capsys: pytest.CaptureFixture[str], format: str, sign: str) -> None:
    sink = console_sink(format=format)
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert sign in capsys.readouterr().out


def test_the_limit_counts_over_all_tasks_and_the_total_is_known() -> None:
    seen: list[EpochRows] = []
    sink = console_sink(limit=5).writing_to(seen.append)
    sink.commit(0, [stage(sink, some_rows(task * 3, 3)) for task in range(4)])
    (epoch,) = seen
    assert rows_of(epoch.rows) == some_rows(0, 5)
    assert (epoch.total, epoch.hidden, epoch.sink) == (12, 7, "out")


def test_a_task_keeps_no_more_rows_than_are_shown() -> None:
    sink = console_sink(limit=2)
    wide = pa.RecordBatch.from_pydict({"text": ["x" * 1000] * 5000})
    staged = sink.stage(iter([wide] * 20))
    assert staged.rows == 100_000
    assert len(staged.detail["inline"]) < 10_000


def test_a_long_row_waits_in_a_file_that_the_commit_removes(capsys: pytest.CaptureFixture[str]) -> None:
    sink = console_sink()
    staged = stage(sink, [{"id": 1, "user": "x" * INLINE_LIMIT}])
    assert Path(staged.detail["file"]).is_file()
    sink.commit(0, [staged])
    assert len(capsys.readouterr().out) > INLINE_LIMIT
    assert not Path(staged.detail["file"]).exists()


def test_a_fresh_run_shows_its_first_epochs_again() -> None:
    seen: list[EpochRows] = []
    sink = console_sink().writing_to(seen.append)
    for _ in range(2):
        sink.open(fresh=True)
        sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert [epoch.epoch for epoch in seen] == [0, 0]


def test_the_writer_stays_on_the_driver() -> None:
    copy = on_executor(console_sink().writing_to(lambda epoch: None))
    assert isinstance(copy, ConsoleSink)
    assert copy.writer is None


def test_an_empty_epoch_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    sink = console_sink(format="table")
    sink.commit(0, [stage(sink, [])])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("format", ["table", "json"])
def test_every_type_can_be_shown(capsys: pytest.CaptureFixture[str], format: str) -> None:
    schema = pa.schema([
        ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(10, 2)),
        ("raw", pa.binary()), ("ratio", pa.float64()), ("nothing", pa.string()),
        ("tags", pa.list_(pa.string())), ("by_day", pa.map_(pa.date32(), pa.int64())),
        ("who", pa.struct([("name", pa.string())]))])
    day = datetime.date(2024, 2, 29)
    row = {"day": day, "at": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
           "price": Decimal("1.50"), "raw": b"\xff\x00", "ratio": math.nan,
           "nothing": None, "tags": ["a"], "by_day": [(day, 1)],
           "who": {"name": "ann"}}
    sink = console_sink(format=format)
    sink.commit(0, [sink.stage(iter([pa.RecordBatch.from_pylist([row], schema)]))])
    printed = capsys.readouterr().out
    if format == "json":
        assert json.loads(printed, parse_constant=pytest.fail) == {
            "day": "2024-02-29", "at": "2024-02-29T12:00:00+00:00", "price": "1.50", "raw": "/wA=",
            "ratio": "nan", "nothing": None, "tags": ["a"], "by_day": {"2024-02-29": 1},
            "who": {"name": "ann"}}
    else:
        assert "1.50" in printed


def test_a_full_standard_output_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = console_sink(format="json")
    staged = stage(sink, some_rows(0, 1))
    full = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115  (closing it raises too)
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(ConnectorError, match="sink 'out': standard output cannot be written: No space left"):
        sink.commit(0, [staged])
    with pytest.raises(OSError):
        full.close()


@pytest.mark.parametrize(("options", "message"), [
    ({"limit": 0}, "limit is 0; use a whole number from 1 up"),
    ({"limit": True}, "limit is True"),
    ({"format": "xml"}, "format is 'xml'; use table or json"),
    ({"console": "stdout"}, "console takes no value"),
])
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        console_sink(**options)
