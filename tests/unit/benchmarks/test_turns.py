from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peers_jobs.work import Work
from side_by_side import turns
from side_by_side.contestants import CONTESTANTS, Contestant
from side_by_side.environments import NotInstalled
from side_by_side.ratios import Figure
from side_by_side.recovery import Recovered
from side_by_side.runs import Ran
from side_by_side.telling import Telling
from side_by_side.turns import Plan, Turns, in_turn


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order in which contestants ran; nothing is run, and Pathway is not to be had."""
    order: list[str] = []

    def python_of(contestant: Contestant, _: object) -> Path:
        if contestant.name == "pathway":
            raise NotInstalled("no wheel")
        return Path("python")

    def run_once(contestant: Contestant, _: Path, work: Work, *__: Any) -> Ran:
        order.append(f"{work.job} {contestant.name}")
        return Ran(2.0)

    def kill_and_recover(contestant: Contestant, _: Path, work: Work, __: object) -> Recovered:
        order.append(f"{work.job} {contestant.name}")
        return Recovered(1.0)

    monkeypatch.setattr(turns, "python_of", python_of)
    monkeypatch.setattr(turns, "run_once", run_once)
    monkeypatch.setattr(turns, "kill_and_recover", kill_and_recover)
    return order


def taken(*jobs: str, repeat: int = 1) -> Turns:
    made = Turns(Plan(CONTESTANTS, jobs, repeat, quick=True, megabytes=1), Telling())
    for _ in made.take():
        pass
    return made


def test_everybody_runs_once_and_then_everybody_again(ran: list[str]) -> None:
    taken("stateless", "recovery", repeat=2)

    once = ["penstock", "pyflink", "bytewax", "pyspark"]
    again = ["pyflink", "bytewax", "pyspark", "penstock"]
    assert ran == [f"{job} {name}" for job in ("stateless", "recovery") for name in [*once, *again]]


def test_everybody_begins_a_turn_once() -> None:
    orders = [in_turn(CONTESTANTS, turn) for turn in range(len(CONTESTANTS) + 1)]

    assert [order[0] for order in orders] == [*CONTESTANTS, CONTESTANTS[0]]
    assert all(sorted(order, key=CONTESTANTS.index) == list(CONTESTANTS) for order in orders)


def test_a_peer_that_is_not_installed_is_in_the_results_with_its_reason(ran: list[str]) -> None:
    made = taken("stateless", "recovery")

    assert made.results()["stateless"]["pathway"] == Figure(trouble="cannot be installed: no wheel")
    assert made.recovered["pathway"] == [Recovered(trouble="cannot be installed: no wheel")]
    assert made.results()["stateless"]["penstock"] == Figure(1_000_000.0)


def test_a_job_that_a_peer_has_no_means_for_is_not_tried(ran: list[str]) -> None:
    results = taken("batch-function").results()["batch-function"]

    assert ran == ["batch-function penstock", "batch-function pyflink", "batch-function pyspark"]
    assert results["bytewax"].trouble == "its operators have no Arrow batches"


def test_what_an_earlier_run_found_stands_beside_what_is_measured_now(ran: list[str]) -> None:
    made = Turns(Plan(CONTESTANTS, ("stateless",), 1, quick=True, megabytes=1), Telling())
    earlier = {
        "amounts": {"stateless": 1.0, "word-count": 100.0},
        "runs": {"stateless": {"penstock": [{"seconds": 9.0}]}, "word-count": {"penstock": [{"seconds": 2.0}]}},
        "recovery": {"bytewax": [{"silent_seconds": 3.0}]},
    }
    made.remember(earlier)
    for _ in made.take():
        pass
    assert made.results()["word-count"]["penstock"] == Figure(50.0)
    assert made.runs["stateless"]["penstock"] == [Ran(2.0)]
    assert made.recovered == {"bytewax": [Recovered(3.0)]}
