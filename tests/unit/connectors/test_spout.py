from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.base import Place
from penstock.connectors.spout import SpoutSource
from penstock.errors import ConnectorError, OperatorError, TopologyError
from penstock.topology.schema import parse_schema

from .source_conformance import ALL, SourceConformance, everything, rows_between

CODE = """
from penstock import Spout

class Squares(Spout):
    def initialize(self, count=10):
        self.count = count

    def emit_from(self, offset, limit):
        for n in range(offset, min(offset + limit, self.count)):
            yield n, n * n

    def ended(self, offset):
        return offset >= self.count

class Strange(Squares):
    rows = [(0, 0), {"n": 1}, (1, 2, 3), {"m": 1}, ("2", 4), (2.5, 4), (True, 1), (3, 2**40), None, (5, None)]

    def emit_from(self, offset, limit):
        return self.rows[offset:offset + limit]

class Endless(Spout):
    def emit_from(self, offset, limit):
        return range(offset, offset + 10 * limit)

class Forgetful(Squares):
    asked = 0

    def emit_from(self, offset, limit):
        self.asked += 1
        return [(1, 1)] * (3 if self.asked == 1 else 2)

class Raises(Spout):
    def emit_from(self, offset, limit):
        yield 1, 1
        raise KeyError("gone")

class Exits(Squares):
    def initialize(self):
        raise SystemExit(3)

class NoSpout:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spouts_of_test.py").write_text(CODE)
    return tmp_path


def spout(folder: Path, name: str, schema: str = "n int, square int", **arguments: Any) -> SpoutSource:
    place = Place("t", "numbers", folder)
    options = {"spout": f"spouts_of_test:{name}", "with": arguments or None}
    return SpoutSource.configure(place, options, parse_schema(schema))


class TestConformance(SourceConformance):
    @pytest.fixture
    def source(self, folder: Path) -> SpoutSource:
        return spout(folder, "Squares", count=23)


class TestConformanceWithMalformedRows(SourceConformance):
    @pytest.fixture
    def source(self, folder: Path) -> SpoutSource:
        return spout(folder, "Strange")


def test_arguments_reach_initialize(folder: Path) -> None:
    rows, _ = everything(spout(folder, "Squares", count=3))
    assert rows == [{"n": 0, "square": 0}, {"n": 1, "square": 1}, {"n": 2, "square": 4}]


def test_rows_that_do_not_fit_are_malformed_and_the_others_are_not(folder: Path) -> None:
    rows, malformed = everything(spout(folder, "Strange"))
    assert rows == [{"n": 0, "square": 0}, {"n": 1, "square": None}, {"n": 5, "square": None}]
    assert [(bad.raw, bad.error) for bad in malformed] == [
        ("(1, 2, 3)", "2 fields expected, 3 found"),
        ("{'m': 1}", "no column 'm' in the schema 'n int, square int'"),
        ("('2', 4)", "column 'n': '2' is not int"),
        ("(2.5, 4)", "column 'n': 2.5 is not int"),
        ("(True, 1)", "column 'n': True is not int"),
        ("(3, 1099511627776)", "column 'square': 1099511627776 is not int"),
        ("None", "2 fields expected, 1 found"),
    ]
    assert malformed[0].position == "spouts_of_test:Strange[2]"


def test_a_value_alone_is_a_tuple_of_one_column(folder: Path) -> None:
    source = spout(folder, "Endless", "n bigint")
    rows, _ = rows_between(source, {"row": 5}, {"row": 8})
    assert rows == [{"n": 5}, {"n": 6}, {"n": 7}]


def test_more_tuples_than_asked_for_are_left_alone(folder: Path) -> None:
    cut = spout(folder, "Endless", "n bigint").cut({"row": 5}, 4)
    assert (cut.end, cut.tuples, cut.ended) == ({"row": 9}, 4, False)


def test_large_epochs_are_read_in_several_slices(folder: Path) -> None:
    source = spout(folder, "Squares", count=40_000)
    parts = source.slices({"row": 0}, {"row": 40_000}, 4)
    assert [part.first for part in parts] == [0, 10_000, 20_000, 30_000]


def test_a_spout_that_gives_fewer_tuples_the_second_time_is_found_out(folder: Path) -> None:
    source = spout(folder, "Forgetful")
    cut = source.cut(source.start(), ALL)
    with pytest.raises(ConnectorError, match=r"gave 2 tuples from offset 0, and 3 before; emit_from must give"):
        rows_between(source, source.start(), cut.end)


def test_what_the_spout_raises_is_reported_with_the_users_line(folder: Path) -> None:
    line = next(n for n, text in enumerate(CODE.splitlines(), 1) if "KeyError" in text)
    with pytest.raises(OperatorError, match=rf"Raises.emit_from raised KeyError: 'gone' \(spouts_of_test.py:{line}\)"):
        spout(folder, "Raises").cut({"row": 0}, 10)


def test_a_spout_that_calls_sys_exit_does_not_end_the_process(folder: Path) -> None:
    with pytest.raises(OperatorError, match=r"Exits.initialize raised SystemExit: 3"):
        spout(folder, "Exits").cut({"row": 0}, 10)


def test_a_class_that_is_no_spout_is_refused(folder: Path) -> None:
    with pytest.raises(TopologyError, match=r"spouts_of_test:NoSpout is not a subclass of penstock.Spout"):
        spout(folder, "NoSpout").cut({"row": 0}, 10)


def test_a_spout_needs_a_schema(folder: Path) -> None:
    with pytest.raises(TopologyError, match="a spout needs a schema"):
        SpoutSource.configure(Place("t", "s", folder), {"spout": "a:B", "with": None}, None)


def test_the_spout_object_itself_is_not_pickled(folder: Path) -> None:
    source = spout(folder, "Squares")
    source.cut({"row": 0}, 1)
    assert b"count" not in pickle.dumps(source).replace(b"arguments", b"")
