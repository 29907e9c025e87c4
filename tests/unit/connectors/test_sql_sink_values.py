from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import ConnectorError

from .test_sql_sink import batch_of, commit, opened, query, staged_files


def every_type() -> pa.RecordBatch:
    """Two rows of values that are easily broken, and one of nulls."""
    moment = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)
    return pa.RecordBatch.from_pydict({
        "tiny": pa.array([-128, 127, None], pa.int8()),
        "large": pa.array([-2**63, 2**63 - 1, None], pa.int64()),
        "single": pa.array([0.1, float("inf"), None], pa.float32()),
        "double": pa.array([1e-300, float("-inf"), None], pa.float64()),
        "flag": pa.array([True, False, None]),
        "text": pa.array(["", 'a\n\\."b",\t\'c\' ✓ 𝄞', None]),
        "price": pa.array([Decimal("123.40"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
        "exact": pa.array([Decimal("12345678901234567890.123456789"), Decimal("0E-9"), None], pa.decimal128(38, 9)),
        "day": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
        "at": pa.array([moment, moment.replace(year=1904), None], pa.timestamp("us", "UTC")),
        "local": pa.array([moment, moment.replace(microsecond=0), None], pa.timestamp("us")),
        "raw": pa.array([b"", b"\x00\xff\\x\n", None]),
        "100% \"odd\" ?": pa.array(["a", "b", None]),
    })


def test_every_type_comes_back_as_it_went(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    commit(sink, 0, every_type())
    (back,) = sink.read_back()
    exact = back.column("exact").to_pylist()
    assert exact[:1] == ["12345678901234567890.123456789"], "more digits than SQLite's numbers have are text"
    assert [Decimal(value) for value in exact[1:2]] == [0]
    wanted = {name: values for name, values in every_type().to_pydict().items() if name != "exact"}
    wanted["at"] = [value and value.replace(tzinfo=None) for value in wanted["at"]]
    assert {name: values for name, values in back.to_pydict().items() if name != "exact"} == wanted


def test_values_are_stored_so_that_sql_can_compare_and_add_them(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    commit(sink, 0, every_type())
    assert query(tmp_path, "SELECT count(*) FROM counts WHERE price > 9 AND flag AND day < '2000-01-01' "
                           "AND at > '2024-02-29 23:59:59' AND date(at) = '2024-02-29'") == [(1,)]
    assert query(tmp_path, "SELECT round(sum(price), 2) FROM counts") == [(123.39,)]


def test_sqlite_knows_no_nan(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    commit(sink, 0, batch_of(x=[float("nan"), 1.0]))
    assert query(tmp_path, "SELECT x FROM counts") == [(None,), (1.0,)]


def nested_values() -> pa.RecordBatch:
    inner = pa.struct([("day", pa.date32()), ("sum", pa.decimal128(5, 2)), ("raw", pa.binary()),
                       ("x", pa.list_(pa.float64()))])
    deep = {"day": datetime.date(2024, 2, 29), "sum": Decimal("1.10"), "raw": b"\xff", "x": [float("inf")]}
    return pa.RecordBatch.from_pydict({
        "tags": pa.array([["ä", None], [], None]),
        "by": pa.array([[("x", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "numbered": pa.array([[(1, 1.5)], [(2, float("nan"))], None], pa.map_(pa.int32(), pa.float64())),
        "deep": pa.array([deep, {"day": None}, None], inner),
    })


def test_nested_values_are_json_text(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    commit(sink, 0, nested_values())
    stored = query(tmp_path, "SELECT * FROM counts")
    assert [[value and json.loads(value) for value in row] for row in stored] == [
        [["ä", None], {"x": 1}, {"1": 1.5}, {"day": "2024-02-29", "sum": "1.10", "raw": "/w==", "x": ["Infinity"]}],
        [[], {}, {"2": "NaN"}, {"day": None, "sum": None, "raw": None, "x": None}],
        [None, None, None, None]]
    assert query(tmp_path, "SELECT tags ->> 0 FROM counts")[0] == ("ä",)


def test_foreign_arrow_types_find_a_column(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    commit(sink, 0, pa.RecordBatch.from_pydict({
        "large": pa.array(["a"], pa.large_string()), "word": pa.array(["b"]).dictionary_encode(),
        "half": pa.array([1.5], pa.float32()).cast(pa.float16()), "unsigned": pa.array([2**32 - 1], pa.uint32()),
        "nothing": pa.array([None]), "nano": pa.array([1_000_000_001], pa.timestamp("ns", "Europe/Rome"))}))
    assert query(tmp_path, "SELECT * FROM counts") == [("a", "b", 1.5, 2**32 - 1, None, "1970-01-01 00:00:01.000000")]


def test_a_type_that_no_column_has_is_refused_with_its_column(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    with pytest.raises(ConnectorError, match=r"column 'took' is of type duration\[us\], .* convert it before the sink"):
        sink.stage(iter([batch_of(took=pa.array([1], pa.duration("us")))]))
    assert staged_files(tmp_path) == []
