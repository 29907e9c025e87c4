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


def test_the_example_pure_python(example: Any, penstock: Any) -> None:
    done = penstock("run", str(example("pure-python")))
    assert done.returncode == 0, done.stderr
    rows = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda row: row["sensor"])
    assert rows == [{"sensor": sensor, "what": "hot", "count": count}
                    for sensor, count in (("cellar", 307), ("kitchen", 353), ("roof", 326))]
