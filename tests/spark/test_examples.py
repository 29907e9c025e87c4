"""Every example gives what its page says; tests/system has those that are worth a process of their own."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.connectors.console import EpochRows
from penstock.connectors.registry import catalogue
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run
from penstock.topology.loading import load_topology

from ..examples import EXAMPLES, copied_example, json_lines


@dataclass(frozen=True)
class Ran:
    """An example that has come to its end."""

    folder: Path
    shown: list[Any]
    """The rows of its console sinks."""
    progress: Snapshot

    def lines(self, name: str) -> list[Any]:
        return json_lines(self.folder / "out" / name)


def ran(name: str, folder: Path, spark: SparkSession) -> Ran:
    copy = copied_example(name, folder)
    topology, problems = load_topology(copy, catalogue())
    assert topology is not None, problems
    shown: list[Any] = []

    def show(rows: EpochRows) -> None:
        shown.extend(rows.rows.to_pylist())

    run = Run(topology)
    run.start(spark, show=show)
    outcome = run.wait()
    assert outcome.ended
    return Ran(copy, shown, outcome.progress)


def test_every_example_is_run_by_a_test_of_its_name() -> None:
    files = (Path(__file__), Path(__file__).parents[1] / "system/test_examples.py")
    names = [name for file in files for name in re.findall(r"^def test_the_example_(\w+)", file.read_text(), re.M)]
    assert sorted(name.replace("_", "-") for name in names) == sorted(
        path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", sorted(
    path.parent.name for path in EXAMPLES.glob("*/topology.yaml") if re.search("^tests:", path.read_text(), re.M)))
def test_the_cases_of_an_example_pass(name: str, tmp_path: Path, spark: SparkSession) -> None:
    tested = CliRunner().invoke(app, ["test", str(copied_example(name, tmp_path))])
    assert tested.exit_code == 0, tested.output
    assert ", 0 failed" in tested.output


def test_the_example_orders_to_sql(tmp_path: Path, spark: SparkSession) -> None:
    done = ran("orders-to-sql", tmp_path, spark)
    with sqlite3.connect(done.folder / "out/shop.db") as database:
        assert database.execute("SELECT id FROM sales ORDER BY id").fetchall() == [(1,), (3,), (4,), (6,), (7,)]
        bought = database.execute("SELECT * FROM customers ORDER BY 1").fetchall()
    assert bought == [("ann", 3), ("bob", 1), ("jürgen", 1)]


def test_the_example_fraud(tmp_path: Path, spark: SparkSession) -> None:
    alerts = ran("fraud", tmp_path, spark).lines("alerts.jsonl")
    assert sorted((row["card"], row["what"]) for row in alerts) == [
        ("4000-2", "blocked after 2 payments of 1380.00"),
        ("4000-2", "freed"),
        ("4000-2", "refused 3.50 at bakery"),
        ("4000-2", "refused 650.00 at jeweller"),
        ("4000-3", "blocked after 3 payments of 1072.10"),
        ("4000-3", "freed"),
        ("4000-3", "refused 50.00 at petrol"),
    ]


def test_the_example_orders_payments(tmp_path: Path, spark: SparkSession) -> None:
    done = ran("orders-payments", tmp_path, spark)
    settled = sorted((row["id"], row["in_full"]) for row in done.lines("settled.jsonl"))
    assert settled == [(1, True), (2, True), (4, False), (5, None)]
    overdue = sorted(done.lines("overdue.jsonl"), key=lambda row: row["id"])
    assert overdue == [{"id": 3, "item": "tea", "price": 2.5}, {"id": 6, "item": "tea", "price": 2.5}]


def test_the_example_log_alerts(tmp_path: Path, spark: SparkSession) -> None:
    done = ran("log-alerts", tmp_path, spark)
    header, *alerts = (done.folder / "out/alerts.csv").read_text().splitlines()
    assert header == "time,service,level,message"
    assert sorted(alerts) == [
        '2026-03-01T08:00:02.000Z,web,ERROR,"cannot reach the database, trying again"',
        "2026-03-01T08:00:09.000Z,billing,FATAL,out of disk space while writing invoice 18 to the archive of"]
    levels = {(row["service"], row["level"]): row["count"] for row in done.lines("levels.jsonl")}
    assert levels == {("web", "INFO"): 2, ("web", "ERROR"): 1, ("web", "WARN"): 1,
                      ("billing", "INFO"): 1, ("billing", "FATAL"): 1}
    [letter] = done.lines("malformed.jsonl")
    assert (letter["raw"], letter["position"]) == ("this line was cut off by a rotation", "app.jsonl:4")
    assert (done.progress.tuples["log"], done.progress.malformed) == (6, {"log": 1})


def test_the_example_acking(tmp_path: Path, spark: SparkSession) -> None:
    done = ran("acking", tmp_path, spark)
    assert done.shown[-1] == {"count": 299}
    booked = sorted(done.lines("booked.jsonl"), key=lambda row: row["id"])
    assert booked == [{"id": order, "receipt": f"R-{order}"} for order in range(300) if order != 250]
    (lost,) = done.lines("dead-letters.jsonl")
    assert (lost["operator"], lost["tuple"], lost["attempts"], lost["error"]) == (
        "booked", {"id": 250}, 3, "not acked within 1 s")
    assert (done.progress.failed, done.progress.retried) == ({"booked": 1}, 5)


def test_the_example_sessions(tmp_path: Path, spark: SparkSession) -> None:
    done = ran("sessions", tmp_path, spark)
    sessions = sorted((row["user"], row["window_start"][11:16], row["clicks"], row["pages"])
                      for row in done.lines("sessions.jsonl"))
    assert sessions == [
        ("ann", "08:00", 4, ["/", "/shoes", "/shoes/red", "/basket"]), ("ann", "08:26", 1, ["/"]),
        ("bob", "08:00", 2, ["/", "/hats"]), ("bob", "08:12", 2, ["/", "/basket"]), ("cem", "08:20", 1, ["/"])]
    assert sorted(row["user"] for row in done.shown) == ["ann", "bob"]
    paths = sorted((row["user"], row["path"], row["seconds"]) for row in done.lines("paths.jsonl"))
    assert paths == [("ann", "/", 0), ("ann", "/ → /shoes → /shoes/red → /basket", 240), ("bob", "/ → /basket", 45),
                     ("bob", "/ → /hats", 145), ("cem", "/", 0)]


def test_the_example_trending(tmp_path: Path, spark: SparkSession) -> None:
    trending: dict[str, list[tuple[str, int]]] = {}
    for row in ran("trending", tmp_path, spark).lines("trending.jsonl"):
        trending.setdefault(row["until"][11:16], []).append((row["tag"], row["posts"]))
    assert trending == {
        "08:01": [("spring", 2), ("rain", 1)], "08:02": [("spring", 3), ("football", 2), ("rain", 2)],
        "08:03": [("football", 4), ("spring", 1), ("rain", 1)], "08:04": [("football", 2)]}
