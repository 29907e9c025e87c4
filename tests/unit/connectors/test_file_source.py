from __future__ import annotations

import json
import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors import file_source
from penstock.connectors.base import Malformed, Place
from penstock.connectors.file_source import FileSource
from penstock.connectors.records import line_file
from penstock.connectors.records import slices as record_slices
from penstock.connectors.records.line_file import LineFile
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.schema import parse_schema

from .source_conformance import ALL, SourceConformance, cuts, everything, rows_between

USERS = "id int, user string"


def source_of(folder: Path, file: str, schema: str | None = None, **options: Any) -> FileSource:
    defaults = {option.name: option.default for option in FileSource.describe.options}
    declared = None if schema is None else parse_schema(schema)
    return FileSource.configure(Place("t", "tweets", folder), {**defaults, "file": file, **options}, declared)


def read(folder: Path, text: str | bytes, schema: str | None, name: str = "in.csv", **options: Any) -> tuple[Any, Any]:
    """All rows, as tuples, and all malformed records of one file."""
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    rows, malformed = everything(source_of(folder, name, schema, **options))
    return [tuple(row.values()) for row in rows], malformed


@pytest.fixture
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and slices of a few bytes, so that small files meet every boundary."""
    monkeypatch.setattr(file_source, "_BLOCK", 16)
    monkeypatch.setattr(record_slices, "LEAST_SHARE", 32)


# -- conformance ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_slices")
class TestCsvConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        (tmp_path / "in.csv").write_text("".join(f"{n}, user{n}\n" for n in range(23)))
        return source_of(tmp_path, "in.csv", USERS)


@pytest.mark.usefixtures("tiny_slices")
class TestCsvWithHeadersOverSeveralFilesConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        (tmp_path / "a.csv").write_text("user,extra,id\n" + "".join(f"user{n},-,{n}\n" for n in range(9)))
        (tmp_path / "b.csv").write_text("id,user\n")
        (tmp_path / "c.csv").write_text("id,user\n" + "".join(f"{n},user{n}\n" for n in range(9)) + "9,last")
        return source_of(tmp_path, "*.csv", USERS, header=True)


@pytest.mark.usefixtures("tiny_slices")
class TestMalformedJsonConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        good = [json.dumps({"id": n, "user": f"user{n}"}) for n in range(12)]
        bad = ["null", "{", '{"id":\n1}', '{"id":1}{"id":2}', '{"id":1} null {}', '{"id":"x"}', '{"id":99999999999}']
        lines = [line for pair in zip(good, [*bad, *bad], strict=False) for line in pair]
        (tmp_path / "in.jsonl").write_text("\n".join(lines))
        return source_of(tmp_path, "in.jsonl", USERS)


@pytest.mark.usefixtures("tiny_slices")
class TestMalformedCsvConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        bad = [
            b'1,"open',
            b'2,"b"',
            b'close",3',
            b"x,y",
            b"1,\xff",
            b"1",
            b"1,2,3",
            b"1,a\r2,b",
            b'1,"c\rd"',
            b'1, "e, f"',
        ]
        (tmp_path / "in.csv").write_bytes(b"\n".join(line for text in bad for line in (text, b"7,good", text)))
        return source_of(tmp_path, "in.csv", USERS)


@pytest.mark.usefixtures("tiny_slices")
class TestBlankLinesAndCommentsConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        (tmp_path / "in.csv").write_text("% who\n\n" + "1, ann\n \n  % more\r\n2, bob\r\n\r\n" * 4 + "3, cid\n\n")
        return source_of(tmp_path, "in.csv", USERS, comment="%")


@pytest.mark.usefixtures("tiny_slices")
class TestTextConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        (tmp_path / "in.txt").write_bytes("one\n\n  zwölf \r\nthree\n".encode() * 5 + b"\xff\nlast")
        return source_of(tmp_path, "in.txt")


@pytest.mark.usefixtures("tiny_slices")
class TestParquetConformance(SourceConformance):
    @pytest.fixture
    def source(self, tmp_path: Path) -> FileSource:
        for name, first in (("a", 0), ("b", 20)):
            table = pa.table({"id": list(range(first, first + 20)), "user": [f"user{n}" for n in range(20)]})
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=7)
        return source_of(tmp_path, "*.parquet")


# -- CSV --------------------------------------------------------------------------------------------


def test_blanks_and_quotes_are_not_part_of_a_csv_field(tmp_path: Path) -> None:
    text = '1, user3, "www.x.pt"\n2 ,\tuser7 , "a, ""b"" , c" \n3,"  kept  ",5" disk\n'
    rows, malformed = read(tmp_path, text, "id int, user string, url string", "tweets.dat")
    assert rows == [(1, "user3", "www.x.pt"), (2, "user7", 'a, "b" , c'), (3, "  kept  ", '5" disk')]
    assert malformed == []


def test_without_strip_blanks_stay(tmp_path: Path) -> None:
    assert read(tmp_path, "1, ann \n", USERS, strip=False) == ([(1, " ann ")], [])


def test_stripping_many_lines_agrees_with_stripping_each_alone() -> None:
    from penstock.connectors.records.blanks import strip_blanks

    alphabet = b'a \t,"\r'
    dice = random.Random(7)
    for _ in range(2000):
        lines = [bytes(dice.choices(alphabet, k=dice.randrange(9))) + b"\n" for _ in range(3)]
        assert strip_blanks(b"".join(lines), b",") == b"".join(strip_blanks(line, b",") for line in lines), lines


def test_every_type_is_read_from_csv(tmp_path: Path) -> None:
    schema = "a tinyint, b bigint, c float, d double, e boolean, f date, g timestamp, h timestamp_ntz, i decimal(5,2)"
    text = (
        "1,2,0.5,NaN,true,2026-01-02,2026-01-02T03:04:05Z,2026-01-02 03:04:05,1.5\n"
        "1,2,0.5,1e3,FALSE,2026-01-02,2026-01-02 03:04:05.25,2026-01-02T03:04:05.250,-2\n"
        ",,,,,,,,\n"
        "1,2,0.5,1,1,2026-01-02,2026-01-02T03:04:05+01:00,2026-01-02,3\n"
    )
    rows, malformed = read(tmp_path, text, schema)
    assert malformed == []
    assert str(rows[0][3]) == "nan"
    assert rows[0][4:] == (
        True, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5),
        Decimal("1.50"),
    )  # fmt: skip
    assert rows[1][6] == datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
    assert rows[2] == (None,) * 9
    assert rows[3][6] == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)


def test_an_empty_csv_field_is_an_empty_string_or_null(tmp_path: Path) -> None:
    assert read(tmp_path, ",\nNULL,NULL\n", "a string, b string") == ([("", ""), ("NULL", "NULL")], [])
    assert read(tmp_path, ",\n", "a int, b double") == ([(None, None)], [])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"x,ann", "column 'id': 'x' is not int"),
        (b"1.5,ann", "column 'id': '1.5' is not int"),
        (b"99999999999,ann", "column 'id': '99999999999' is not int"),
        (b"1", "2 fields expected, 1 found"),
        (b"1,ann,3", "2 fields expected, 3 found"),
        (b'1,"ann', "a quote is opened and not closed on the same line"),
        (b'1, "ann', "a quote is opened and not closed on the same line"),
        (b"1,an\xffn", "not UTF-8: byte 0xff, number 5 of the line"),
        (b"1,a\r2,b", "a carriage return within the line"),
    ],
)
def test_a_malformed_csv_line_is_set_aside_alone(tmp_path: Path, line: bytes, error: str) -> None:
    rows, malformed = read(tmp_path, b"1,ann\n" + line + b"\n3,cid\n", USERS)
    assert rows == [(1, "ann"), (3, "cid")]
    assert malformed == [Malformed(line.decode("utf-8", "backslashreplace"), error, "in.csv:2")]


def test_a_timestamp_that_is_none_is_malformed(tmp_path: Path) -> None:
    rows, malformed = read(tmp_path, "2026-01-02\nsoon\n", "at timestamp")
    assert rows == [(datetime(2026, 1, 2, tzinfo=UTC),)]
    assert [bad.error for bad in malformed] == ["column 'at': 'soon' is not timestamp"]


def test_two_open_quotes_do_not_swallow_the_lines_between(tmp_path: Path) -> None:
    rows, malformed = read(tmp_path, '1,"a\n2,b\n3,c"\n', USERS)
    assert rows == [(2, "b"), (3, 'c"')]
    assert [bad.position for bad in malformed] == ["in.csv:1"]


def test_the_header_maps_columns_by_name(tmp_path: Path) -> None:
    text = '\ufeff"user" , extra, id\r\nann,-,1\r\nbob,-,2'
    rows, malformed = read(tmp_path, text, USERS, header=True)
    assert (rows, malformed) == ([(1, "ann"), (2, "bob")], [])


def test_a_header_without_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,name\n1,ann\n")
    with pytest.raises(ConnectorError, match=r"tweets: the header of .*in.csv has no column 'user'; it has id, name"):
        source_of(tmp_path, "in.csv", USERS, header=True).cut({}, ALL)


def test_another_delimiter(tmp_path: Path) -> None:
    assert read(tmp_path, "1 \tann, b\n", USERS, delimiter="\\t") == ([(1, "ann, b")], [])
    assert read(tmp_path, "1; ann, b\n", USERS, delimiter=";") == ([(1, "ann, b")], [])


def test_comments_and_blank_lines_are_no_records(tmp_path: Path) -> None:
    rows, malformed = read(tmp_path, "%% who\n1, ann\n\n  % x\n2, bob%\nx,y\n", USERS, comment="%")
    assert rows == [(1, "ann"), (2, "bob%")]
    assert [bad.position for bad in malformed] == ["in.csv:6"]


# -- JSON -------------------------------------------------------------------------------------------


def test_json_fields_are_found_by_name(tmp_path: Path) -> None:
    text = '\ufeff{"user": "ann", "x": {"y": []}, "id": 1}\r\n  {"id": 2}  \n{}\n\n{"user": null, "id": 3}'
    rows, malformed = read(tmp_path, text, USERS, "in.jsonl")
    assert (rows, malformed) == ([(1, "ann"), (2, None), (None, None), (3, None)], [])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"id": "x"}', "field 'id' is a JSON string, not int"),
        (b'{"user": 1}', "field 'user' is a JSON number, not string"),
        (b'{"id": 1.5}', "1.5 is not int"),
        (b'{"id": 99999999999}', "99999999999 is not int"),
        (b'{"id": 1', "invalid JSON: Expecting ',' delimiter at character 9"),
        (b'{"id": }', "invalid JSON: Invalid value"),
        (b'{"id": 1, "id": 2}', "field 'id' appears twice"),
        (b"[1]", "not a JSON object but [1]"),
        (b"null", "not a JSON object but null"),
        (b'"{}"', 'not a JSON object but "{}"'),
        (b"nonsense", "invalid JSON: Expecting value at character 1"),
        (b'{"id": 1}{"id": 2}', "more than one JSON value in the line"),
        (b'{"id": 1} null {}', "more than one JSON value in the line"),
        (b'{"user": "\xff"}', "not UTF-8: byte 0xff, number 11 of the line"),
        (b'{"ignored": "\xff"}', "not UTF-8: byte 0xff, number 14 of the line"),
        (b'{"user": "\x01"}', "invalid JSON: Invalid encoding in string"),
        (b'{"id": 1}\x00 }', "invalid JSON: a NUL byte in the line"),
    ],
)
def test_a_malformed_json_line_is_set_aside_alone(tmp_path: Path, line: bytes, error: str) -> None:
    text = b'{"id": 1, "user": "ann"}\n' + line + b'\n{"id": 3, "user": "cid"}\n'
    rows, malformed = read(tmp_path, text, USERS, "in.jsonl")
    assert rows == [(1, "ann"), (3, "cid")]
    assert malformed == [Malformed(line.decode("utf-8", "backslashreplace"), error, "in.jsonl:2")]


def test_nested_json_is_read(tmp_path: Path) -> None:
    schema = "tags array<string>, at struct<x:int,y:double>, day date, since timestamp, price decimal(9,2)"
    text = (
        '{"tags": ["a", null], "at": {"x": 1, "z": 2}, "day": "2026-01-02", "since": "2026-01-02T03:04:05+01:00",'
        ' "price": 1.5}\n{"day": "tomorrow"}\n{"at": {"x": "1"}}\n'
    )
    rows, malformed = read(tmp_path, text, schema, "in.json")
    assert rows == [
        (["a", None], {"x": 1, "y": None}, date(2026, 1, 2), datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC), Decimal("1.50"))
    ]
    assert [bad.error for bad in malformed] == [
        "field 'day': 'tomorrow' is not date", "field 'at.x' is a JSON string, not number"
    ]  # fmt: skip


def test_maps_and_binary_are_read_from_json(tmp_path: Path) -> None:
    schema = "counts map<string,int>, by_id map<int,string>, blob binary, days array<date>, price decimal(9,2)"
    lines = [
        '{"counts": {"a": 1}, "by_id": {"7": "x"}, "blob": "aGk=", "days": ["2026-01-02"], "price": 0.1, "more": 1}',
        '{"counts": {"a": "x"}}',
        '{"blob": "?"}',
        "[]",
        "{",
    ]
    rows, malformed = read(tmp_path, "\n".join(lines), schema, "in.json")
    assert rows == [([("a", 1)], [(7, "x")], b"hi", [date(2026, 1, 2)], Decimal("0.10"))]
    assert [bad.error for bad in malformed] == [
        "column 'counts': {'a': 'x'} is not map<string,int>",
        "column 'blob': '?' is not binary",
        "not a JSON object but []",
        "invalid JSON: Expecting property name enclosed in double quotes at character 2",
    ]


def test_a_line_of_ten_megabytes_is_one_record(tmp_path: Path) -> None:
    long = "x" * 10_000_000
    text = f'{{"id": 1, "user": "{long}"}}\n{{"id": "{long}"}}\n{{"id": 3}}\n'
    rows, malformed = read(tmp_path, text, USERS, "in.jsonl")
    assert rows == [(1, long), (3, None)]
    assert len(malformed) == 1
    assert read(tmp_path, f'1, "{long}"\n2,{long}\n', USERS)[0] == [(1, long), (2, long)]


def test_deeply_nested_json_harms_nothing(tmp_path: Path) -> None:
    deep = "[" * 100_000
    rows, malformed = read(tmp_path, f'{{"id": 1}}\n{{"x": {deep}}}\n{deep}\n', USERS, "in.jsonl")
    assert rows == [(1, None)]
    assert [bad.position for bad in malformed] == ["in.jsonl:2", "in.jsonl:3"]


# -- text and Parquet -------------------------------------------------------------------------------


def test_text_keeps_every_line(tmp_path: Path) -> None:
    rows, malformed = read(tmp_path, b"one, two\r\n\n \xc3\xa9\nbad \xff\n", None, "in.log")
    assert rows == [("one, two",), ("",), (" é",)]
    assert malformed == [Malformed("bad \\xff", "not UTF-8: byte 0xff, number 5 of the line", "in.log:4")]


def test_parquet_brings_its_own_schema(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([1], pa.uint32()), "at": pa.array([1], pa.timestamp("ns", "Europe/Lisbon")),
                      "word": pa.array(["a"]).dictionary_encode()})  # fmt: skip
    pq.write_table(table, tmp_path / "in.parquet")
    source = source_of(tmp_path, "in.parquet")
    assert source.schema() == parse_schema("n bigint, at timestamp, word string")
    assert everything(source)[0] == [{"n": 1, "at": datetime(1970, 1, 1, tzinfo=UTC), "word": "a"}]


def test_a_declared_schema_chooses_and_widens_parquet_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x"], "n": pa.array([1], pa.int32())}), tmp_path / "in.parquet")
    assert everything(source_of(tmp_path, "in.parquet", "n bigint"))[0] == [{"n": 1}]


@pytest.mark.parametrize(
    ("schema", "error"), [("m int", "has no column 'm'; it has n"), ("n int", "column 'n' of .* is bigint, not int")]
)
def test_a_declared_schema_that_parquet_has_not_is_refused(tmp_path: Path, schema: str, error: str) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "in.parquet")
    source = source_of(tmp_path, "in.parquet", schema)
    with pytest.raises(ConnectorError, match=error):
        source.schema()
    with pytest.raises(ConnectorError, match=error):
        source.cut({}, ALL)


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_text("not at all")
    with pytest.raises(ConnectorError, match=r"tweets: .*in.parquet is not a Parquet file"):
        source_of(tmp_path, "in.parquet").schema()


# -- files that come and go -------------------------------------------------------------------------


def test_following_waits_for_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("1,ann\n2,b")
    source = source_of(tmp_path, "in.csv", USERS, follow=True)
    first = source.cut({}, ALL)
    assert (first.tuples, first.ended) == (1, False)
    assert source.cut(first.end, ALL).end == first.end
    with path.open("a") as file:
        file.write("ob\n")
    second = source.cut(first.end, ALL)
    assert rows_between(source, first.end, second.end)[0] == [{"id": 2, "user": "bob"}]


def test_new_files_are_picked_up_wherever_they_sort(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    source = source_of(tmp_path, "logs", USERS, follow=True, format="csv")
    assert (source.cut({}, ALL).tuples, source.cut({}, ALL).ended) == (0, False)
    (folder / "m.csv").write_text("1,ann\n")
    (folder / "_SUCCESS").write_text("")
    first = source.cut({}, ALL)
    assert [(key, mark["at"], mark["line"]) for key, mark in first.end.items()] == [("logs/m.csv", 6, 1)]
    (folder / "a.csv").write_text("2,bob\n")
    (folder / "z.csv").write_text("3,cid\n")
    second = source.cut(first.end, ALL)
    rows, _ = rows_between(source, first.end, second.end)
    assert [row["id"] for row in rows] == [2, 3]


def test_a_file_outside_the_folder_is_known_by_its_whole_path(tmp_path: Path) -> None:
    inner = tmp_path / "project"
    inner.mkdir()
    (tmp_path / "in.csv").write_text("1,ann\n")
    source = source_of(inner, str(tmp_path / "in.csv"), USERS)
    assert list(source.cut({}, ALL).end) == [(tmp_path / "in.csv").as_posix()]
    assert everything(source)[0] == [{"id": 1, "user": "ann"}]


def test_malformed_records_are_found_by_their_line_in_later_epochs_too(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,ann\n2,bob\n3,cid\nx,dan\n")
    source = source_of(tmp_path, "in.csv", USERS)
    first = source.cut({}, 2)
    _, malformed = rows_between(source, first.end, source.cut(first.end, 2).end)
    assert [bad.position for bad in malformed] == ["in.csv:4"]


def test_the_backlog_is_judged_by_the_length_of_lines_so_far(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,ann\n" * 100)
    assert source_of(tmp_path, "in.csv", USERS).cut({}, 10).backlog == 90


def test_empty_files_have_no_tuples(tmp_path: Path) -> None:
    for text, header in (("", False), ("", True), ("id,user\n", True), ("id,user", True)):
        (tmp_path / "in.csv").write_text(text)
        cut = source_of(tmp_path, "in.csv", USERS, header=header).cut({}, ALL)
        assert (cut.end, cut.tuples, cut.ended) == ({}, 0, True)


def test_large_files_are_split_and_small_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,ann\n" * 100_000)
    source = source_of(tmp_path, "in.csv", USERS)
    assert len(source.slices({}, source.cut({}, ALL).end, 8)) == 1
    (tmp_path / "in.csv").write_text("1,ann\n" * 700_000)
    parts = source.slices({}, source.cut({}, ALL).end, 2)
    assert [part.first for part in parts] == [0, 350_000]


# -- what can go wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [lambda source: source.schema(), lambda source: source.cut({}, ALL)])
class TestMissing:
    def test_a_missing_file_is_named_with_its_likely_neighbour(self, tmp_path: Path, ask: Any) -> None:
        (tmp_path / "tweets.dat").write_text("")
        expected = rf"tweets: no file {re.escape(str(tmp_path))}/tweets.data; did you mean tweets.dat"
        with pytest.raises(ConnectorError, match=expected):
            ask(source_of(tmp_path, "tweets.data", USERS))

    def test_a_missing_file_is_named_with_the_folder(self, tmp_path: Path, ask: Any) -> None:
        with pytest.raises(ConnectorError, match=rf"no file .*tweets.csv; paths are relative to {tmp_path}"):
            ask(source_of(tmp_path, "tweets.csv", USERS, follow=True))

    def test_a_directory_without_files(self, tmp_path: Path, ask: Any) -> None:
        (tmp_path / "logs").mkdir()
        with pytest.raises(ConnectorError, match=r"no files in the directory .*logs; .*follow: true"):
            ask(source_of(tmp_path, "logs", USERS))

    def test_a_glob_without_matches(self, tmp_path: Path, ask: Any) -> None:
        with pytest.raises(ConnectorError, match=r"no file matches .*\*.csv"):
            ask(source_of(tmp_path, "*.csv", USERS))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_text("1,ann\n")

    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConnectorError, match=r"tweets: cannot read .*in.csv: Permission denied; check"):
        source_of(tmp_path, "in.csv", USERS).cut({}, ALL)


def test_a_file_that_shrank_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("1,ann\n2,bob\n")
    source = source_of(tmp_path, "in.csv", USERS)
    end = source.cut({}, ALL).end
    path.write_text("1,ann\n")
    with pytest.raises(ConnectorError, match=r"in.csv shrank: it was read up to 12 and now ends at 6"):
        source.cut(end, ALL)
    with pytest.raises(ConnectorError, match=r"in.csv shrank"):
        rows_between(source, {}, end)


def test_a_file_that_disappeared_is_reported(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1,ann\n")
    source = source_of(tmp_path, "*.csv", USERS)
    end = source.cut({}, ALL).end
    (tmp_path / "a.csv").unlink()
    with pytest.raises(ConnectorError, match=r"tweets: .*/a.csv disappeared; put it back as it was .* --fresh"):
        source.cut(end, ALL)
    with pytest.raises(ConnectorError, match=r"a.csv disappeared"):
        rows_between(source, {}, end)


def test_the_only_file_that_disappeared_is_reported_as_one_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,ann\n")
    source = source_of(tmp_path, "in.csv", USERS)
    end = source.cut({}, ALL).end
    (tmp_path / "in.csv").unlink()
    with pytest.raises(ConnectorError, match=r"in.csv disappeared; put it back"):
        source.cut(end, ALL)


class TestReplaced:
    """Another file under the same name, as it is found by the next start, which is another connector."""

    said = r"tweets: .*/in.csv was replaced: what is in it up to \d+ is not what was read there; put it back .* --fresh"

    def end_of(self, folder: Path, text: str, limit: int = ALL) -> Any:
        (folder / "in.csv").write_text(text)
        return json.loads(json.dumps(source_of(folder, "in.csv", USERS).cut({}, limit).end))

    @pytest.mark.parametrize("text", ["7,ann\n2,bob\n3,cid\n", "1,ann\n2,bod\n3,cid\n", "1,ann\n2,bod\n3,cid\n4,dan\n"])
    def test_other_content_is_noticed_before_the_next_epoch_is_cut(self, tmp_path: Path, text: str) -> None:
        end = self.end_of(tmp_path, "1,ann\n2,bob\n3,cid\n", limit=2)
        (tmp_path / "in.csv").write_text(text)
        with pytest.raises(ConnectorError, match=self.said):
            source_of(tmp_path, "in.csv", USERS).cut(end, ALL)

    def test_other_content_is_noticed_before_an_agreed_epoch_is_read_again(self, tmp_path: Path) -> None:
        end = self.end_of(tmp_path, "1,ann\n2,bob\n")
        (tmp_path / "in.csv").write_text("1,ann\n2,bod\n")
        with pytest.raises(ConnectorError, match=self.said):
            source_of(tmp_path, "in.csv", USERS).slices({}, end, 2)

    def test_in_a_long_file_the_beginning_and_the_last_lines_are_compared(self, tmp_path: Path) -> None:
        long = "".join(f"{n},user{n}\n" for n in range(2000))
        end = self.end_of(tmp_path, long)
        for other in (long.replace("7,user7\n", "7,user8\n", 1), long.replace("1999,user1999", "1999,user1998")):
            assert len(other) == len(long)
            (tmp_path / "in.csv").write_text(other)
            with pytest.raises(ConnectorError, match=self.said):
                source_of(tmp_path, "in.csv", USERS).cut(end, ALL)

    def test_a_file_that_takes_its_place_in_mid_run_is_noticed(self, tmp_path: Path) -> None:
        (tmp_path / "in.csv").write_text("1,ann\n2,bob\n")
        source = source_of(tmp_path, "in.csv", USERS, follow=True)
        end = source.cut({}, ALL).end
        (tmp_path / "other").write_text("5,eve\n6,fay\n7,gus\n")
        (tmp_path / "other").rename(tmp_path / "in.csv")
        with pytest.raises(ConnectorError, match=self.said):
            source.cut(end, ALL)

    def test_the_same_content_in_another_file_goes_on(self, tmp_path: Path) -> None:
        end = self.end_of(tmp_path, "1,ann\n2,bob\n", limit=1)
        (tmp_path / "in.csv").unlink()
        (tmp_path / "in.csv").write_text("1,ann\n2,rob\n3,cid\n")
        source = source_of(tmp_path, "in.csv", USERS)
        rows, _ = rows_between(source, end, source.cut(end, ALL).end)
        assert [row["user"] for row in rows] == ["rob", "cid"]

    def test_an_offset_from_before_there_were_fingerprints_is_accepted(self, tmp_path: Path) -> None:
        (tmp_path / "in.csv").write_text("id,user\n1,ann\n\n2,bob\n3,cid\n")
        source = source_of(tmp_path, "in.csv", USERS, header=True)
        start = {"in.csv": {"at": 15, "line": 3}}
        cut = source.cut(start, ALL)
        assert (cut.tuples, cut.end["in.csv"]["line"]) == (2, 5)
        assert [row["user"] for row in rows_between(source, start, cut.end)[0]] == ["bob", "cid"]

    def test_a_file_is_looked_at_once_and_not_for_every_epoch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        end = self.end_of(tmp_path, "1,ann\n2,bob\n3,cid\n", limit=1)
        source = source_of(tmp_path, "in.csv", USERS)
        looked: list[int] = []
        whole = LineFile.fingerprint
        monkeypatch.setattr(LineFile, "fingerprint", lambda file, at: looked.append(at) or whole(file, at))
        for expected in ([6, 12], [6, 12, 18], [6, 12, 18]):
            cut = source.cut(end, 1)
            source.slices(end, cut.end, 2)
            assert looked == expected
            end = cut.end

    def test_a_parquet_file_may_be_replaced_only_by_one_that_begins_with_the_same_rows(self, tmp_path: Path) -> None:
        def write(*numbers: int) -> None:
            pq.write_table(pa.table({"id": list(numbers)}), tmp_path / "in.parquet", row_group_size=2)

        write(1, 2, 3, 4)
        end = source_of(tmp_path, "in.parquet").cut({}, ALL).end
        write(1, 2, 3, 4, 5)
        assert source_of(tmp_path, "in.parquet").cut(end, ALL).tuples == 1
        write(1, 2, 4, 3, 5)
        with pytest.raises(ConnectorError, match=r"in.parquet was replaced: what is in it up to 4 is not"):
            source_of(tmp_path, "in.parquet").cut(end, ALL)


# -- what counts as a record ------------------------------------------------------------------------


MIXED = "id,user\n% who\n1,ann\n\n \t\r\n2,bob\n  % more\n3,cid\n\n4,dan\n5,eve\n% end\n\n"


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 5), (2, [2, 2, 1]), (3, [3, 2]), (4, [4, 1]), (5, [5])])
def test_headers_comments_and_blank_lines_count_neither_as_tuples_nor_towards_the_limit(
    tmp_path: Path, limit: int, sizes: list[int]
) -> None:
    (tmp_path / "in.csv").write_text(MIXED)
    source = source_of(tmp_path, "in.csv", USERS, header=True, comment="%")
    made = [cut for _, cut in cuts(source, limit)]
    assert [cut.tuples for cut in made] == sizes
    assert [cut.ended for cut in made] == [False] * (len(sizes) - 1) + [True]
    assert made[-1].end["in.csv"] | {"seen": ""} == {"at": len(MIXED), "line": 13, "skipped": 8, "seen": ""}


def test_the_backlog_does_not_count_the_header(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,user\n" + "1,ann123\n" * 10)
    assert source_of(tmp_path, "in.csv", USERS, header=True).cut({}, 5).backlog == 5


def test_a_file_without_a_record_ends_without_a_tuple(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("% nothing yet\n\n")
    cut = source_of(tmp_path, "in.csv", USERS, comment="%").cut({}, 1)
    assert (cut.tuples, cut.ended) == (0, True)


def test_a_byte_order_mark_does_not_hide_a_comment_and_is_no_record_itself(tmp_path: Path) -> None:
    for text, tuples in (("\ufeff% who\n1,ann\n", 1), ("\ufeff\n1,ann", 1), ("\ufeff", 0)):
        (tmp_path / "in.csv").write_text(text)
        source = source_of(tmp_path, "in.csv", USERS, comment="%")
        cut = source.cut({}, ALL)
        assert (cut.tuples, cut.ended) == (tuples, True)
        assert everything(source) == ([{"id": 1, "user": "ann"}] * tuples, [])
    (tmp_path / "in.txt").write_text("\ufeff")
    assert source_of(tmp_path, "in.txt").cut({}, ALL).tuples == len(everything(source_of(tmp_path, "in.txt"))[0])


def test_lines_longer_than_what_is_read_at_once_are_counted_right(tmp_path: Path) -> None:
    long = "x" * 400_000
    (tmp_path / "in.csv").write_text(f"1,{long}\n\n{' ' * 300_000}\n2,{long}\n{' ' * 300_000}% c\n3,{long}")
    source = source_of(tmp_path, "in.csv", USERS, comment="%")
    assert [cut.tuples for _, cut in cuts(source, 2)] == [2, 1]
    assert [row["id"] for row in everything(source)[0]] == [1, 2, 3]


def test_counting_agrees_with_looking_at_each_line_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_file, "_CHUNK", 8)
    dice = random.Random(11)
    for _ in range(250):
        text = bytes(dice.choices(b"a %# \n\n\r\t", k=dice.randrange(40)))
        (tmp_path / "in.csv").write_bytes(text)
        for comment in (b"", b"%", b"%#"):
            lines = [line.strip() for line in text.split(b"\n")]
            records = [line for line in lines if line and not (comment and line.startswith(comment))]
            source = source_of(tmp_path, "in.csv", "value string", comment=comment.decode(), strip=False)
            assert sum(cut.tuples for _, cut in cuts(source, 2)) == len(records), (text, comment)
            assert source.cut({}, ALL).tuples == len(records), (text, comment)


@pytest.mark.parametrize(
    ("file", "schema", "options", "error"),
    [
        ("in.csv", None, {}, "csv files need a schema; write for example"),
        ("in.json", None, {}, "json files need a schema"),
        ("logs", None, {"format": "csv"}, "csv files need a schema"),
        ("in.txt", USERS, {}, "a text file has one string column, not 'id int, user string'; .*format: csv"),
        ("in.csv", "tags array<int>", {}, r"a CSV field cannot be array<int> \(column 'tags'\)"),
        ("in.csv", USERS, {"delimiter": "::"}, "delimiter '::' is not one character"),
        ("in.csv", USERS, {"delimiter": ""}, "is not one character"),
    ],
)
def test_impossible_settings_are_refused(
    tmp_path: Path, file: str, schema: str | None, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(TopologyError, match=rf"source 'tweets': .*{error}"):
        source_of(tmp_path, file, schema, **options)


def test_files_in_a_directory_are_read_by_their_own_extension(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("1,ann\n")
    (folder / "b.jsonl").write_text('{"id": 2, "user": "bob"}\n')
    rows, _ = everything(source_of(tmp_path, "in", USERS))
    assert [row["user"] for row in rows] == ["ann", "bob"]


def test_only_some_columns_of_json_lines_are_read_and_only_they_can_be_malformed(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"id": 1, "user": "ann"}\n{"id": "x", "user": "bob"}\n{"id": 3, "user": 4}\n')
    schema = parse_schema("id int, user string")
    options = {"format": None, "header": False, "delimiter": ",", "strip": True, "comment": None, "follow": False}
    whole = FileSource.configure(Place("t", "e", tmp_path), {"file": "e.jsonl", **options}, schema)
    source = whole.only(["user"])
    end = whole.cut(whole.start(), 10).end
    assert source.schema().names == ("user",)
    assert source.cut(source.start(), 10).end == end
    (chunk,) = (chunk for part in source.slices({}, end, 2) for chunk in source.read(part))
    assert chunk.rows.to_pydict() == {"user": ["ann", "bob"]}
    assert [bad.position for bad in chunk.malformed] == ["e.jsonl:3"]


def test_a_csv_file_is_read_whole_since_its_fields_are_found_by_counting(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("1,ann\n")
    options = {"format": None, "header": False, "delimiter": ",", "strip": True, "comment": None, "follow": False}
    schema = parse_schema("id int, user string")
    source = FileSource.configure(Place("t", "e", tmp_path), {"file": "e.csv", **options}, schema)
    assert source.only(["user"]) is source
