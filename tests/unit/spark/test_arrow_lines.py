"""Lines that Python makes of Arrow batches; a Spark test compares them with those that Spark makes."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import Encoding
from penstock.spark.arrow_lines import can_encode, encoded
from penstock.topology.schema import parse_schema

ROWS = pa.record_batch({
    "id": pa.array([1, None, -3], pa.int64()),
    "ok": pa.array([True, False, None], pa.bool_()),
})  # fmt: skip


def lines(rows: pa.RecordBatch, encoding: Encoding) -> list[Any]:
    taken: list[Any] = encoded(rows, encoding).column("line").to_pylist()
    return taken


def test_numbers_and_truth_values_as_csv_and_as_json() -> None:
    assert lines(ROWS, "csv") == ["1,true\n", ",false\n", "-3,\n"]
    assert lines(ROWS, "json") == ['{"id":1,"ok":true}\n', '{"id":null,"ok":false}\n', '{"id":-3,"ok":null}\n']
    assert lines(ROWS.select(["id"]), "csv") == ["1\n", '""\n', "-3\n"]


TEXTS = ["plain", "", 'a "quoted" one', "back\\slash", "two\nlines", "\u0001", "ümläut €", None]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_come_out_of_json_as_they_went_in(text: str | None) -> None:
    rows = pa.record_batch({"who": pa.array(["first", text]), 'n"o': pa.array([1, 2])})
    assert [json.loads(line) for line in lines(rows, "json")] == [
        {"who": "first", 'n"o': 1}, {"who": text, 'n"o': 2}]  # fmt: skip


def test_plain_text_has_no_line_for_null() -> None:
    assert lines(pa.record_batch({"line": pa.array(["a", None, ""])}), "text") == ["a\n", None, "\n"]


def test_a_slice_of_a_batch_is_its_own_rows() -> None:
    assert lines(ROWS.slice(1, 1), "csv") == [",false\n"]


@pytest.mark.parametrize(("schema", "encoding", "can"), [
    ("a bigint, b boolean", "csv", True), ("a string", "csv", False), ("a string, b int", "json", True),
    ("a double", "json", False), ("a timestamp", "json", False), ("a double, b timestamp", "columns", True),
    ("a array<int>", "columns", False),
])
def test_what_others_would_write_otherwise_is_left_to_spark(schema: str, encoding: Encoding, can: bool) -> None:
    assert can_encode(parse_schema(schema), encoding) is can
