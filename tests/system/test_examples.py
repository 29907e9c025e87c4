"""Every example runs with one command and gives what its page says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(tmp_path: Path) -> Any:
    """A copy of an example, without what earlier runs left in it."""

    def copy(name: str) -> Path:
        left_by_runs = shutil.ignore_patterns("out", ".penstock", "dead-letters", "__pycache__")
        return Path(shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=left_by_runs))

    return copy


def json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_example_is_run_by_a_test_of_its_name() -> None:
    tested = {name.removeprefix("test_the_example_").replace("_", "-") for name in globals()
              if name.startswith("test_the_example_")}
    assert tested == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}


def test_the_example_url_reach(example: Any, penstock: Any) -> None:
    folder = example("url-reach")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    assert json_lines(folder / "out/reach.jsonl") == [{"count": 6}]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"count": 6}]
    assert "tweets=8 mentions=4 followers=9 unique=6 reach=1 out=1 table=1" in done.stderr
    assert "done after 1 epoch" in done.stderr


def test_the_example_orders_to_sql(example: Any, penstock: Any) -> None:
    folder = example("orders-to-sql")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(folder / "out/shop.db") as database:
        assert database.execute("SELECT id FROM sales ORDER BY id").fetchall() == [(1,), (3,), (4,), (6,), (7,)]
        bought = database.execute("SELECT * FROM customers ORDER BY 1").fetchall()
    assert bought == [("ann", 3), ("bob", 1), ("jürgen", 1)]


def test_the_example_fraud(example: Any, penstock: Any) -> None:
    folder = example("fraud")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    assert sorted((row["card"], row["what"]) for row in json_lines(folder / "out/alerts.jsonl")) == [
        ("4000-2", "blocked after 2 payments of 1380.00"),
        ("4000-2", "freed"),
        ("4000-2", "refused 3.50 at bakery"),
        ("4000-2", "refused 650.00 at jeweller"),
        ("4000-3", "blocked after 3 payments of 1072.10"),
        ("4000-3", "freed"),
        ("4000-3", "refused 50.00 at petrol"),
    ]


def test_the_example_orders_payments(example: Any, penstock: Any) -> None:
    folder = example("orders-payments")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    settled = sorted((row["id"], row["in_full"]) for row in json_lines(folder / "out/settled.jsonl"))
    assert settled == [(1, True), (2, True), (4, False), (5, None)]
    overdue = sorted(json_lines(folder / "out/overdue.jsonl"), key=lambda row: row["id"])
    assert overdue == [{"id": 3, "item": "tea", "price": 2.5}, {"id": 6, "item": "tea", "price": 2.5}]


def test_the_example_word_count(example: Any, penstock: Any) -> None:
    folder = example("word-count")
    done = penstock("run", "--json", "--set", "epoch.max_tuples=400", cwd=folder)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = {}
    for row in json_lines(folder / "out/words.jsonl"):
        counts[row["word"]] = max(row["count"], counts.get(row["word"], 0))
    assert len(counts) == 16
    assert (counts["seven"], counts["moon"]) == (400, 200)
    assert json_lines(folder / "out/short-words.jsonl")[-1] == {"count": 3000}

    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {event["event"] for event in events} <= {"phase", "progress", "row", "end"}
    assert events[-1]["event"] == "end"
    assert events[-1]["epoch"] == 3
    assert events[-1]["tuples"]["sentences"] == 1000
    assert events[-1]["malformed"] == {}


def test_the_example_log_alerts(example: Any, penstock: Any) -> None:
    folder = example("log-alerts")
    done = penstock("run", cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *alerts = (folder / "out/alerts.csv").read_text().splitlines()
    assert header == "time,service,level,message"
    assert sorted(alerts) == [
        '2026-03-01T08:00:02.000Z,web,ERROR,"cannot reach the database, trying again"',
        "2026-03-01T08:00:09.000Z,billing,FATAL,out of disk space while writing invoice 18 to the archive of"]
    levels = {(row["service"], row["level"]): row["count"] for row in json_lines(folder / "out/levels.jsonl")}
    assert levels == {("web", "INFO"): 2, ("web", "ERROR"): 1, ("web", "WARN"): 1,
                      ("billing", "INFO"): 1, ("billing", "FATAL"): 1}
    [letter] = json_lines(folder / "out/malformed.jsonl")
    assert (letter["raw"], letter["position"]) == ("this line was cut off by a rotation", "app.jsonl:4")
    assert "log=6(+1 malformed)" in done.stderr


def test_the_example_poison(example: Any, penstock: Any) -> None:
    folder = example("poison")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"count": 4994}
    charged = [row["id"] for row in json_lines(folder / "out/charged.jsonl")]
    assert sorted(charged) == [number for number in range(5000) if number % 1000 != 13 and number != 4321]
    *poisoned, closed = json_lines(folder / "out/dead-letters.jsonl")
    assert [(letter["operator"], letter["tuple"], letter["attempts"]) for letter in poisoned] == [
        ("amounts", {"id": number}, 1) for number in (13, 1013, 2013, 3013, 4013)]
    assert (closed["error"], closed["attempts"], closed["at"]) == ("the account is closed", 4, "shop.py:26")
    assert "amounts=4995(5 failed) charged=4994(1 failed) total=8 charged=4994 total=8 retried 13" in done.stderr
    assert "done after 13 epochs" in done.stderr


def test_the_example_acking(example: Any, penstock: Any) -> None:
    folder = example("acking")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"count": 299}
    booked = sorted(json_lines(folder / "out/booked.jsonl"), key=lambda row: row["id"])
    assert booked == [{"id": order, "receipt": f"R-{order}"} for order in range(300) if order != 250]
    (lost,) = json_lines(folder / "out/dead-letters.jsonl")
    assert (lost["operator"], lost["tuple"], lost["attempts"], lost["error"]) == (
        "booked", {"id": 250}, 3, "not acked within 1 s")
    assert "orders=300 booked=299(1 failed) total=4 booked=299 total=4 retried 5" in done.stderr


def test_the_example_sessions(example: Any, penstock: Any) -> None:
    folder = example("sessions")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    sessions = sorted((row["user"], row["window_start"][11:16], row["clicks"], row["pages"])
                      for row in json_lines(folder / "out/sessions.jsonl"))
    assert sessions == [
        ("ann", "08:00", 4, ["/", "/shoes", "/shoes/red", "/basket"]), ("ann", "08:26", 1, ["/"]),
        ("bob", "08:00", 2, ["/", "/hats"]), ("bob", "08:12", 2, ["/", "/basket"]), ("cem", "08:20", 1, ["/"])]
    assert sorted(json.loads(line)["user"] for line in done.stdout.splitlines()) == ["ann", "bob"]
    paths = sorted((row["user"], row["path"], row["seconds"]) for row in json_lines(folder / "out/paths.jsonl"))
    assert paths == [("ann", "/", 0), ("ann", "/ → /shoes → /shoes/red → /basket", 240), ("bob", "/ → /basket", 45),
                     ("bob", "/ → /hats", 145), ("cem", "/", 0)]
    tested = penstock("test", str(folder))
    assert tested.returncode == 0, tested.stdout


def test_the_example_trending(example: Any, penstock: Any) -> None:
    folder = example("trending")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    trending: dict[str, list[tuple[str, int]]] = {}
    for row in json_lines(folder / "out/trending.jsonl"):
        trending.setdefault(row["until"][11:16], []).append((row["tag"], row["posts"]))
    assert trending == {
        "08:01": [("spring", 2), ("rain", 1)], "08:02": [("spring", 3), ("football", 2), ("rain", 2)],
        "08:03": [("football", 4), ("spring", 1), ("rain", 1)], "08:04": [("football", 2)]}


def test_the_example_pure_python(example: Any, penstock: Any) -> None:
    done = penstock("run", str(example("pure-python")))
    assert done.returncode == 0, done.stderr
    rows = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda row: row["sensor"])
    assert rows == [{"sensor": sensor, "what": "hot", "count": count}
                    for sensor, count in (("cellar", 307), ("kitchen", 353), ("roof", 326))]
