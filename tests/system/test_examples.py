"""Examples that are run with one command, as their pages say; the others share one Spark in tests/spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..examples import copied_example, json_lines


@pytest.fixture
def example(tmp_path: Path) -> Any:
    return lambda name: copied_example(name, tmp_path)


def test_the_example_url_reach(example: Any, penstock: Any) -> None:
    folder = example("url-reach")
    done = penstock("run", str(folder))
    assert done.returncode == 0, done.stderr
    assert json_lines(folder / "out/reach.jsonl") == [{"count": 6}]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"count": 6}]
    assert "tweets=8 mentions=4 followers=9 unique=6 reach=1 out=1 table=1" in done.stderr
    assert "done after 1 epoch" in done.stderr


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
