"""Joins of two streams, against the same join computed at once over all of the input."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Topology
from penstock.runtime.progress import Snapshot
from penstock.testing import run_on
from penstock.topology.builder import Stream
from penstock.topology.model import EpochSettings

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
WITHIN = timedelta(minutes=10)


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


def joined(kind: str, epoch: EpochSettings, lateness: str = "30 minutes", on: str | None = "at") -> Stream:
    orders = Topology("shop", epoch=epoch).source("orders", rows=[], schema="id int, item string, at timestamp")
    payments = Topology("shop").source("payments", rows=[], schema="order_id int, amount int, at timestamp")
    return orders.join(payments, "orders.id = payments.order_id", within="10 minutes", on=on, kind=kind,
                       lateness=lateness if on else 0.0)


def pairs(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(((row["item"], row["amount"]) for row in rows), key=str)


def computed_at_once(orders: list[list[Any]], payments: list[list[Any]], kind: str) -> list[tuple[Any, ...]]:
    """The join as SQL means it."""
    found = []
    for order_id, item, ordered in orders:
        partners = [amount for other, amount, paid in payments
                    if order_id is not None and other == order_id and ordered and paid
                    and abs(datetime.fromisoformat(ordered) - datetime.fromisoformat(paid)) <= WITHIN]
        found += [(item, amount) for amount in partners]
        if kind == "left" and not partners:
            found.append((item, None))
    return sorted(found, key=str)


def disordered(seed: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Orders and payments over two hours: nulls, several of a key, none out of order by more than 20 minutes."""
    chance = random.Random(seed)

    def rows(number: int, name: str) -> list[list[Any]]:
        made = []
        for place in range(number):
            minute = place * 120 / number + chance.uniform(-10, 10)
            key = None if chance.random() < 0.05 else chance.randrange(number // 3)
            made.append([key, f"{name}{place}" if name else place, at(minute)])
        return made

    return rows(60, "order"), rows(50, "")


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_join_over_many_epochs_is_what_it_is_over_all_tuples_at_once(kind: str) -> None:
    orders, payments = disordered(7)
    topology = joined(kind, EpochSettings(max_tuples=9)).sink("out", memory=True)
    result = run_on(topology, orders=orders, payments=payments)
    assert pairs(result["out"]) == computed_at_once(orders, payments, kind)


def test_a_tuple_without_a_key_or_a_time_finds_nobody_and_appears_alone() -> None:
    orders = [[None, "no key", at(0)], [1, "no time", None], [2, "good", at(1)]]
    payments = [[None, 1, at(0)], [1, 2, at(0)], [2, 3, at(2)], [2, 4, None]]
    result = run_on(joined("left", EpochSettings()).sink("out", memory=True), orders=orders, payments=payments)
    assert pairs(result["out"]) == [("good", 3), ("no key", None), ("no time", None)]


def test_a_left_join_on_the_time_of_epochs_gives_up_after_a_while(project: Any) -> None:
    """While its sources are idle; and what fails then is buried in that epoch, though the tuple is of another."""
    project.write("own.py", "def bury(tup): raise ValueError('never paid')")
    project.write("orders.jsonl", '{"id": 1}\n{"id": 2}\n')
    project.write("payments.jsonl", '{"order_id": 1}\n')
    topology = project.topology("""
        topology: idle
        dead_letters: dead.jsonl
        sources:
          orders:   {file: orders.jsonl, follow: true, schema: "id int"}
          payments: {file: payments.jsonl, follow: true, schema: "order_id int"}
        operators:
          paid:   {from: {o: orders, p: payments}, join: o.id = p.order_id, within: 2s, kind: left}
          lonely: {from: paid, filter: order_id is null}
          buried: {from: lonely, custom: "own:bury", emits: "id int", on_error: dead-letter}
        sinks:
          paid: {from: paid, file: paid.jsonl}
          none: {from: buried, file: none.jsonl}
        """)
    run = project.started(topology)

    def look(_: Snapshot) -> None:
        dead = project.folder / "dead.jsonl"
        if dead.exists() and dead.read_text().count("\n"):
            run.stop()

    run.wait(look)
    assert sorted(row["id"] for row in project.json_lines("paid.jsonl")) == [1, 2]
    [letter] = project.json_lines("dead.jsonl")
    assert letter["tuple"] == {"id": 2, "order_id": None}
    assert letter["epoch"] > 1


def test_a_stream_joins_itself_and_a_window_follows_a_left_join() -> None:
    visits = Topology("visits", epoch=EpochSettings(max_tuples=3)).source(
        "visits", rows=[], schema="user string, page int, at timestamp")
    chains = visits.join(visits, "a.user = b.user and b.page = a.page + 1", within="10 minutes", on="at", kind="left",
                         lateness="30 minutes", ports=("a", "b"))
    hours = chains.window("tumbling(1 hour)", on="a_at", compute=["count() as visits", "count(b_page) as followed"])
    rows = [["ann", 1, at(0)], ["ben", 1, at(5)], ["ann", 2, at(8)], ["ann", 3, at(50)], ["ben", 2, at(58)],
            ["ann", 4, at(59)], ["ben", 3, at(61)], ["cy", 1, at(130)]]
    result = run_on(hours.sink("out", memory=True), visits=rows)
    counted = sorted((row["window_start"][11:16], row["visits"], row["followed"]) for row in result["out"])
    assert counted == [("09:00", 6, 3), ("10:00", 1, 0), ("11:00", 1, 0)]
