from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.base import Place
from penstock.connectors.generator import GeneratorSource
from penstock.errors import TopologyError
from penstock.topology.schema import parse_schema

from .source_conformance import ALL, SourceConformance, everything, rows_between

EVERY_FUNCTION = {
    "id": "sequence",
    "die": "int(1, 6)",
    "far": "int(0, 9000000000)",
    "share": "float(0, 1)",
    "colour": "choice(red, green, 'dark blue')",
    "word": "word(50)",
    "letters": "string(11)",
    "key": "uuid",
    "at": "timestamp('2026-01-01T00:00:00Z', 250ms)",
    "kind": "constant(x)",
    "price": 5,
}


def generator(columns: Any, **options: Any) -> GeneratorSource:
    place = Place("t", "made", Path())
    return GeneratorSource.configure(
        place, {"generator": columns, "rate": None, "count": None, "seed": 0, **options}, None
    )


class TestConformance(SourceConformance):
    @pytest.fixture
    def source(self) -> GeneratorSource:
        return generator(EVERY_FUNCTION, count=25)


class TestConformanceOverSeveralSlices(SourceConformance):
    @pytest.fixture
    def source(self) -> GeneratorSource:
        return generator({"id": "sequence"}, count=25)

    def test_many_rows_are_divided_equally(self) -> None:
        source = generator({"id": "sequence"}, count=100_000)
        parts = source.slices({"row": 0}, {"row": 100_000}, 4)
        assert [part.first for part in parts] == [0, 25_000, 50_000, 75_000]


def test_the_schema_follows_from_the_columns() -> None:
    expected = (
        "id bigint, die int, far bigint, share double, colour string, word string, letters string, key string, "
        "at timestamp, kind string, price int"
    )
    assert generator(EVERY_FUNCTION).schema() == parse_schema(expected)


def test_every_function_makes_what_it_says() -> None:
    rows, malformed = everything(generator(EVERY_FUNCTION, count=2000))
    assert not malformed
    assert [row["id"] for row in rows] == list(range(2000))
    assert {row["die"] for row in rows} == {1, 2, 3, 4, 5, 6}
    assert all(0 <= row["share"] < 1 for row in rows)
    assert 0.45 < sum(row["share"] for row in rows) / 2000 < 0.55
    assert {row["colour"] for row in rows} == {"red", "green", "dark blue"}
    assert len({row["word"] for row in rows}) == 50
    assert all(len(row["letters"]) == 11 and row["letters"].islower() for row in rows)
    assert len({row["letters"] for row in rows}) == 2000
    assert all(uuid.UUID(row["key"]).version == 4 for row in rows)
    assert rows[3]["at"] == datetime(2026, 1, 1, 0, 0, 0, 750_000, tzinfo=UTC)
    assert {row["kind"] for row in rows} == {"x"}
    assert {row["price"] for row in rows} == {5}


def test_a_row_does_not_depend_on_where_reading_begins() -> None:
    source = generator(EVERY_FUNCTION)
    whole, _ = rows_between(source, {"row": 0}, {"row": 70_000})
    tail, _ = rows_between(source, {"row": 69_990}, {"row": 70_000})
    assert whole[-10:] == tail


def test_seeds_and_columns_have_their_own_values() -> None:
    columns = {"a": "int(0, 1000000)", "b": "int(0, 1000000)"}
    first, _ = everything(generator(columns, count=100))
    other, _ = everything(generator(columns, count=100, seed=1))
    assert [row["a"] for row in first] != [row["b"] for row in first]
    assert [row["a"] for row in first] != [row["a"] for row in other]


def test_without_count_it_never_ends() -> None:
    cut = generator({"id": "sequence"}).cut({"row": 0}, 1000)
    assert (cut.tuples, cut.ended, cut.backlog) == (1000, False, 0)


def test_words_of_a_large_vocabulary_are_all_different() -> None:
    from penstock.connectors.generator_columns import _words

    assert len(set(_words(30_000).to_pylist())) == 30_000


class TestRate:
    now = 1_000.0

    def at_rate(self, rate: float, **options: Any) -> GeneratorSource:
        return replace(generator({"id": "sequence"}, rate=rate, **options), clock=lambda: self.now)

    def test_the_first_tuple_is_due_at_once(self) -> None:
        cut = self.at_rate(10).cut({"row": 0}, ALL)
        assert (cut.end, cut.tuples) == ({"row": 1, "since": 1_000_000}, 1)

    def test_as_many_are_due_as_the_rate_gives(self) -> None:
        source = self.at_rate(10)
        first = source.cut(source.start(), ALL)
        assert source.cut(first.end, ALL).end == first.end
        self.now += 2.5
        assert source.cut(first.end, ALL).end == {"row": 26, "since": 1_000_000}

    def test_what_is_due_beyond_the_limit_is_backlog(self) -> None:
        source = self.at_rate(10)
        first = source.cut(source.start(), ALL)
        self.now += 10
        cut = source.cut(first.end, 40)
        assert (cut.tuples, cut.backlog) == (40, 60)

    def test_it_ends_at_the_count(self) -> None:
        source = self.at_rate(10, count=5)
        first = source.cut(source.start(), ALL)
        self.now += 10
        cut = source.cut(first.end, ALL)
        assert (cut.end["row"], cut.ended, cut.backlog) == (5, True, 0)

    def test_a_clock_that_goes_back_never_moves_the_offset_back(self) -> None:
        source = self.at_rate(10)
        first = source.cut(source.start(), ALL)
        self.now -= 60
        cut = source.cut(first.end, ALL)
        assert (cut.end, cut.tuples) == (first.end, 0)


@pytest.mark.parametrize(
    "written",
    ["inf(1, 2)", "int(1)", "int(6, 1)", "int(a, b)", "word(0)", "timestamp(soon, 1s)", "timestamp(2026-01-01, 1x)",
     "choice()", None, ["a"], "string(-1)", "choice(99999999999999999999)"],
)  # fmt: skip
def test_what_cannot_be_generated_is_refused_with_what_can(written: Any) -> None:
    with pytest.raises(TopologyError, match=r"source 'made': column 'x'.*write one of sequence, int\(lo, hi\)"):
        generator({"x": written})


@pytest.mark.parametrize("options", [{"rate": 0}, {"rate": -1}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TopologyError, match="rate"):
        generator({"id": "sequence"}, **options)


def test_a_generator_without_columns_is_refused() -> None:
    with pytest.raises(TopologyError, match="write for example"):
        generator({})


def test_a_schema_that_contradicts_the_columns_is_refused() -> None:
    options = {"generator": {"id": "sequence"}, "rate": None, "count": None, "seed": 0}
    with pytest.raises(TopologyError, match="the generator makes 'id bigint', not 'id int'"):
        GeneratorSource.configure(Place("t", "made", Path()), options, parse_schema("id int"))
