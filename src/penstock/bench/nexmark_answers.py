"""What the Nexmark queries should give: the same questions as batch SQL over the same events, all at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

Row = Mapping[str, Any]
Rows = Counter[str]
"""Rows as JSON, and how often each is there: their order does not matter."""


def _as_they_are(rows: Iterable[Row]) -> Iterable[Row]:
    return rows


def _last_of(*key: str) -> Callable[[Iterable[Row]], Iterable[Row]]:
    """A row replaces the one with the same key that came before it."""
    return lambda rows: {tuple(row[column] for column in key): row for row in rows}.values()


def _bids_of_everybody(rows: Iterable[Row]) -> Iterable[Row]:
    """Windows by the time of epochs are others in every run; all of them together are not."""
    total: Counter[int] = Counter()
    for row in rows:
        total[row["bidder"]] += row["bids"]
    return [{"bidder": bidder, "bids": bids} for bidder, bids in total.items()]


@dataclass(frozen=True)
class Answer:
    """A query over the table `events`, and what to make of the rows that a topology gives before they are compared."""

    sql: str
    settled: Callable[[Iterable[Row]], Iterable[Row]] = _as_they_are


ANSWERS: Mapping[str, Answer] = {
    "q0": Answer("SELECT auction, bidder, price, at FROM events WHERE kind = 2"),
    "q1": Answer("SELECT auction, bidder, 0.908 * price AS price, at FROM events WHERE kind = 2"),
    "q2": Answer("SELECT auction, price FROM events WHERE kind = 2 AND auction % 123 = 0"),
    "q3": Answer("""
        SELECT p.name, p.city, p.state, a.id AS auction
        FROM events p JOIN events a ON p.id = a.seller
        WHERE p.kind = 0 AND a.kind = 1 AND a.category = 10 AND p.state IN ('OR', 'ID', 'CA')"""),
    "q5": Answer("""
        WITH seen AS (
          SELECT auction, window.end AS until, count(*) AS bids
          FROM events WHERE kind = 2 GROUP BY auction, window(at, '10 seconds', '2 seconds')
        )
        SELECT until, auction, bids FROM (SELECT *, max(bids) OVER (PARTITION BY until) AS most FROM seen)
        WHERE bids = most"""),
    "q7": Answer("""
        SELECT auction, bidder, price, at FROM (
          SELECT *, row_number() OVER (PARTITION BY window(at, '10 seconds') ORDER BY price DESC, at) AS place
          FROM events WHERE kind = 2
        ) WHERE place = 1"""),
    "q8": Answer("""
        SELECT DISTINCT p.id, p.name, floor(unix_micros(p.at) / 10000000) AS part
        FROM events p JOIN events a ON p.id = a.seller
          AND floor(unix_micros(p.at) / 10000000) = floor(unix_micros(a.at) / 10000000)
        WHERE p.kind = 0 AND a.kind = 1"""),
    "q11": Answer("""
        SELECT bidder, count(*) AS bids, session_window.start AS since, session_window.end AS until
        FROM events WHERE kind = 2 GROUP BY bidder, session_window(at, '10 seconds')"""),
    "q12": Answer("SELECT bidder, count(*) AS bids FROM events WHERE kind = 2 GROUP BY bidder", _bids_of_everybody),
    "q13": Answer("""
        SELECT auction, bidder, price, at, value FROM events JOIN side ON auction % 10000 = key WHERE kind = 2"""),
    "q18": Answer("""
        SELECT auction, bidder, max_by(price, at) AS price, max(at) AS at
        FROM events WHERE kind = 2 GROUP BY auction, bidder""", _last_of("auction", "bidder")),
    "q19": Answer("""
        SELECT auction, slice(reverse(array_sort(collect_list(price))), 1, 10) AS prices
        FROM events WHERE kind = 2 GROUP BY auction""", _last_of("auction")),
}  # fmt: skip


def expected(spark: SparkSession, query: str) -> Rows:
    """What the query gives of the tables `events` and `side`."""
    rows = spark.sql(f"SELECT to_json(struct(*)) AS line FROM ({ANSWERS[query].sql})").toLocalIterator()
    return counted(json.loads(row["line"]) for row in rows)


def given(query: str, lines: Iterable[str]) -> Rows:
    """What a topology has written, as it can be compared."""
    return counted(ANSWERS[query].settled(json.loads(line) for line in lines))


def counted(rows: Iterable[Row]) -> Rows:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
