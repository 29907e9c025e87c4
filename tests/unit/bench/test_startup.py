from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bench import startup
from penstock.bench.bare_query import COLUMNS, CONDITION, SCHEMA
from penstock.bench.startup import CONTESTANTS, OURS, SPARKS, TUNED, ratios, seconds_until, write_job
from penstock.chaos.life import Session
from penstock.cli.bench_startup import table_of, verdicts
from penstock.connectors.registry import catalogue
from penstock.errors import DeliveryError
from penstock.topology.loading import load_topology
from penstock.topology.model import Filter, Select
from penstock.validation import validate

from ..cli.typed import penstock

SECONDS = {OURS: [6.0, 9.0, 6.5], SPARKS: [13.0, 12.0, 14.0], TUNED: [5.0, 4.0, 4.5]}


def test_medians_are_compared_and_judged() -> None:
    assert ratios(SECONDS) == {SPARKS: 0.5, TUNED: pytest.approx(6.5 / 4.5)}
    assert [row[1:] for row in table_of(SECONDS).rows] == [
        ["6.50", "6.00", "9.00", ""], ["13.00", "12.00", "14.00", "×0.50"], ["4.50", "4.00", "5.00", "×1.44"]]
    assert verdicts(SECONDS) == [
        "medians of 3 turns", "bare Spark: 0.50 times as long (goal: at most 1.3): held",
        "bare Spark, Penstock's settings: 1.44 times as long (goal: at most 1.3): not held"]
    assert tuple(SECONDS) == CONTESTANTS


def test_turns_of_an_earlier_run_count_and_everything_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, done, turns = tmp_path / "page.md", tmp_path / "done.jsonl", []

    def measure(repetitions: int, _: object) -> Iterator[dict[str, float]]:
        turns.append(repetitions)
        yield from ({OURS: 6.0, SPARKS: 12.0, TUNED: 5.0} for _ in range(repetitions))

    monkeypatch.setattr(startup, "measure_startup", measure)
    done.write_text(penstock("bench", "startup", "--repetitions", "2", "--json").stdout)
    for repetitions in ("3", "2"):
        said = penstock("bench", "startup", "--repetitions", repetitions, "--beside", str(done),
                        "--markdown", str(page), "--svg", str(tmp_path))  # fmt: skip
        assert said.exit_code == 0
        assert "×0.50" in said.stdout
    assert turns == [2, 1], "the last found all its turns"
    assert "- medians of 2 turns, 2 of them of earlier runs" in page.read_text()
    assert "(startup.svg)" in page.read_text()
    assert "12.00" in (tmp_path / "startup.svg").read_text()


def test_everybody_has_the_same_job(tmp_path: Path) -> None:
    topology, problems = load_topology(write_job(tmp_path), catalogue())
    assert topology is not None, problems
    assert [str(each) for each in validate(topology, catalogue()) if each.severity == "error"] == []
    dear, gross = topology.operators
    assert isinstance(dear, Filter)
    assert isinstance(gross, Select)
    assert (dear.condition, gross.columns) == (CONDITION, COLUMNS)
    assert SCHEMA in (tmp_path / "topology.yaml").read_text()


def test_it_is_timed_until_the_file_is_there_and_then_killed(tmp_path: Path) -> None:
    file, started = tmp_path / "commits" / "0", tmp_path / "pid"
    program = ("import os, pathlib, time; time.sleep(0.2); "
               f"pathlib.Path({str(started)!r}).write_text(str(os.getpid())); "
               f"file = pathlib.Path({str(file)!r}); file.parent.mkdir(); file.touch(); time.sleep(600)")
    took = seconds_until(file, [sys.executable, "-c", program], tmp_path / "said")
    assert 0.2 < took < 60
    assert Session(int(started.read_text())).survivors() == 0


def test_who_ends_without_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match=r"(?s)no epoch was committed:.*no Java"):
        seconds_until(tmp_path / "0", [sys.executable, "-c", "raise SystemExit('no Java')"], tmp_path / "said")
