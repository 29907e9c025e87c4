"""Digests of rows, as replicas compare them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.replication.divergence import are_alike
from penstock.spark.digests import digest_columns, written_digest

DEEP = "struct<inside: array<map<string, double>>>"


@pytest.fixture
def digest(spark: SparkSession) -> Any:
    def of(rows: list[tuple[Any, ...]], schema: str, *rounded: str, parts: int = 1) -> str:
        frame = spark.createDataFrame(rows, schema).repartition(parts)
        return written_digest(frame.agg(*digest_columns(frame, rounded)).first().asDict())  # type: ignore[union-attr]

    return of


def test_neither_the_order_of_rows_nor_how_they_are_divided_matters(digest: Any) -> None:
    rows = [(n, f"w{n}", n / 7) for n in range(50)]
    one = digest(rows, "n int, word string, x double")
    assert one == digest(rows[::-1], "n int, word string, x double", parts=3)
    assert one != digest(rows[:-1], "n int, word string, x double")
    assert one != digest([*rows[:-1], (49, "w49", 7.5)], "n int, word string, x double")


@pytest.mark.parametrize(("schema", "value", "other"), [
    ("n int, v double", 0.1 + 0.2, 0.3),
    ("n int, v array<double>", [1.0, 2.0], [1.0, 2.5]),
    ("n int, v map<string, int>", {"a": 1, "b": 2}, {"a": 1, "b": 3}),
    ("n int, v map<string, int>", {"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ("n int, v map<string, int>", {}, None),
    (f"n int, v {DEEP}", ([{"a": 1.0}],), ([{"b": 1.0}],)),
    (f"n int, v {DEEP}", ([{"a": 1.0}],), ([{"a": 1.5}],)),
])  # fmt: skip
def test_every_value_counts(digest: Any, schema: str, value: Any, other: Any) -> None:
    assert digest([(1, value)], schema) != digest([(1, other)], schema)


def test_the_order_of_a_map_does_not_matter(digest: Any, spark: SparkSession) -> None:
    schema = "n int, v map<string, int>"
    assert digest([(1, {"a": 1, "b": 2})], schema) == digest([(1, {"b": 2, "a": 1})], schema)
    # Python may sort: Spark does not.
    frames = [spark.range(1).select(F.expr(f"map({entries}) as v")) for entries in ("1, 'a', 2, 'b'", "2, 'b', 1, 'a'")]
    one, other = (frame.agg(*digest_columns(frame, ())).first() for frame in frames)
    assert one == other


def test_of_a_text_into_which_a_sum_was_written_all_but_its_numbers_is_compared(digest: Any) -> None:
    def of(text: str | None) -> str:
        return str(digest([(1, text)], "n int, v string", "v"))

    assert of("total: 0.30000000000000004") == of("total: 0.3") == of("total: 3E-1") == of("total: -0.0")
    assert len({of("total: 0.3"), of("sum: 0.3"), of("total: 0.3 of 1"), of(None), of("")}) == 5
    assert of("1b9d6bcd") != of("6ec0bd7f")


@pytest.mark.parametrize(("kind", "value", "near"), [
    ("double", 0.1 + 0.2, 0.3),
    ("float", 0.1, 0.10000001),
    ("array<double>", [0.1 + 0.2], [0.3]),
    (DEEP, ([{"a": 0.1 + 0.2}],), ([{"a": 0.3}],)),
    ("array<struct<x: double, y: string>>", [(0.1 + 0.2, "y")], [(0.3, "y")]),
])  # fmt: skip
def test_sums_may_differ_in_their_last_digits(digest: Any, kind: str, value: Any, near: Any) -> None:
    schema = f"n int, v {kind}"
    one, other = (digest([(1, each), (2, None)], schema, "v") for each in (value, near))
    assert one != other
    assert are_alike(one, other)


@pytest.mark.parametrize(("kind", "value", "other"), [
    ("double", 0.3, 0.4),
    ("double", 0.3, -0.3),
    ("double", 0.0, None),
    ("double", 0.0, math.nan),
    ("double", 0.3, math.inf),
    ("array<double>", [1.0, 2.0], [1.0, 2.5]),
    ("array<double>", [1.0], [1.0, 0.0]),
    (DEEP, ([{"a": 1.0}],), ([{"b": 1.0}],)),
    (DEEP, ([{"a": 1.0}],), ([{"a": 1.5}],)),
    ("array<struct<x: double, y: string>>", [(0.3, "y")], [(0.3, "z")]),
])  # fmt: skip
def test_but_in_nothing_else(digest: Any, kind: str, value: Any, other: Any) -> None:
    schema = f"n int, v {kind}"
    assert not are_alike(digest([(1, value)], schema, "v"), digest([(1, other)], schema, "v"))


def test_a_sum_belongs_to_its_row(digest: Any) -> None:
    one = digest([("a", 1.0), ("b", 2.0)], "key string, v double", "v")
    assert not are_alike(one, digest([("a", 2.0), ("b", 1.0)], "key string, v double", "v"))


def test_rows_without_columns_and_no_rows_have_a_digest(digest: Any) -> None:
    assert digest([], "n int, v double", "v") == "0:0 0.0/0.0"
    assert digest([], "n int") == "0:0"
