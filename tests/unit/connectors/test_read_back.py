"""What sinks do for a rehearsal: write elsewhere, and give back what they have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.file_sink import FileSink
from penstock.connectors.memory import MemorySink

from .sink_conformance import COLUMNS, csv_line, some_rows, stage


def file_sink(folder: Path, file: str, name: str = "out", **options: Any) -> FileSink:
    return FileSink.configure(Place("reach", name, folder), {"file": file, **options}).with_columns(COLUMNS)


def committed(sink: SinkConnector, epochs: int = 3) -> SinkConnector:
    """The sink after some epochs of two rows, the second of them empty."""
    sink.open(fresh=True)
    for epoch in range(epochs):
        sink.commit(epoch, [stage(sink, some_rows(epoch * 2, 2) if epoch != 1 else [])])
    return sink


ROWS = [*some_rows(0, 2), *some_rows(4, 2)]


def read(sink: SinkConnector) -> list[dict[str, Any]]:
    return [row for batch in sink.read_back() or () for row in batch.to_pylist()]


def lines(sink: SinkConnector) -> list[str]:
    return [row["line"] for row in read(sink)]


@pytest.mark.parametrize("file", ["out.jsonl", "out/"])
def test_the_lines_of_json_come_back_in_order(tmp_path: Path, file: str) -> None:
    sink = committed(file_sink(tmp_path, file))
    assert [json.loads(line) for line in lines(sink)] == ROWS


@pytest.mark.parametrize("file", ["out.csv", "out/"])
@pytest.mark.parametrize("header", [True, False])
def test_the_lines_of_csv_come_back_without_the_header(tmp_path: Path, file: str, header: bool) -> None:
    sink = committed(file_sink(tmp_path, file, format="csv", header=header))
    assert lines(sink) == [csv_line(row).rstrip("\n") for row in ROWS]


def test_the_header_is_left_out_by_a_sink_that_does_not_know_its_columns(tmp_path: Path) -> None:
    committed(file_sink(tmp_path, "out.csv"))
    other = FileSink.configure(Place("reach", "out", tmp_path), {"file": "out.csv"})
    assert lines(other) == [csv_line(row).rstrip("\n") for row in ROWS]


def test_the_rows_of_parquet_come_back_in_order(tmp_path: Path) -> None:
    assert read(committed(file_sink(tmp_path, "out.parquet"))) == ROWS


@pytest.mark.parametrize("file", ["out.jsonl", "out/", "out.parquet"])
def test_before_anything_is_written_there_is_nothing_to_read(tmp_path: Path, file: str) -> None:
    sink = file_sink(tmp_path, file)
    assert read(sink) == []
    sink.open(fresh=True)
    assert read(sink) == []


@pytest.mark.parametrize("file", ["out.jsonl", "out/"])
def test_rows_that_are_only_staged_do_not_come_back(tmp_path: Path, file: str) -> None:
    sink = committed(file_sink(tmp_path, file))
    stage(sink, some_rows(90, 5))
    assert len(lines(sink)) == 4


@pytest.mark.parametrize("file", ["deep/out.jsonl", "deep/out/", "deep/out.parquet"])
def test_a_redirected_sink_writes_to_the_scratch_folder_and_nowhere_else(tmp_path: Path, file: str) -> None:
    scratch = tmp_path / "scratch"
    sink = file_sink(tmp_path / "own", file).redirected(scratch)
    committed(sink)
    assert len(read(sink)) == 4
    assert not (tmp_path / "own").exists()
    assert sink.path.is_relative_to(scratch)


def test_a_redirected_sink_leaves_the_original_output_as_it_is(tmp_path: Path) -> None:
    original = committed(file_sink(tmp_path, "out.jsonl"))
    before = (tmp_path / "out.jsonl").read_bytes()
    committed(file_sink(tmp_path, "out.jsonl").redirected(tmp_path / "scratch"), epochs=1)
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert len(lines(original)) == 4


def test_sinks_whose_files_have_the_same_name_do_not_meet_in_the_scratch_folder(tmp_path: Path) -> None:
    one = file_sink(tmp_path, "a/out.jsonl", name="one").redirected(tmp_path / "scratch")
    two = file_sink(tmp_path, "b/out.jsonl", name="two").redirected(tmp_path / "scratch")
    committed(one, epochs=1)
    committed(two, epochs=3)
    assert (len(lines(one)), len(lines(two))) == (2, 4)


def test_a_redirected_sink_may_write_over_what_is_in_the_scratch_folder(tmp_path: Path) -> None:
    sink = file_sink(tmp_path, "out.jsonl").redirected(tmp_path)
    sink.path.parent.mkdir(parents=True)
    sink.path.write_text("left by somebody\n")
    assert len(lines(committed(sink))) == 4


def test_a_memory_sink_gives_its_rows_back_as_often_as_asked(tmp_path: Path) -> None:
    sink = committed(MemorySink.configure(Place(str(tmp_path), "out", tmp_path), {}))
    assert read(sink) == ROWS
    assert read(sink) == ROWS


def test_a_memory_sink_that_was_never_opened_has_nothing_to_give(tmp_path: Path) -> None:
    assert read(MemorySink.configure(Place(str(tmp_path), "nobody", tmp_path), {})) == []


def test_a_memory_sink_cannot_be_redirected(tmp_path: Path) -> None:
    assert MemorySink.configure(Place("t", "out", tmp_path), {}).redirected(tmp_path) is None
