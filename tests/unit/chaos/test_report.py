from __future__ import annotations

import json
from dataclasses import replace

from penstock.chaos.gaps import GapReport
from penstock.chaos.report import Report
from penstock.chaos.schedule import Act, Disturbance
from penstock.chaos.trial import Outcome, Strike
from penstock.chaos.verdict import Verdict
from penstock.epochs.moments import Moment
from penstock.topology.model import Delivery

STRIKES = (
    Strike(Disturbance(1, Act.KILL_JVM, 3, Moment.BETWEEN_SINKS), 12.3456, 3),
    Strike(Disturbance(2, Act.FREEZE, 5, seconds=2.0), 20.0, 6),
    Strike(Disturbance(3, Act.FILL_DISK, 7), 30.0, 8, "not done: must be superuser"),
    Strike(Disturbance(4, Act.KILL_ALL, 9), None, 9, "not reached"),
)


def report(delivery: Delivery = Delivery.EXACTLY_ONCE, breaches: tuple[str, ...] = (), lost: int = 0) -> Report:
    reference = Outcome(True, 25, 0, 0, 20.0, 1, 0.5, 3)
    disturbed = Outcome(True, 25, 2, 80, 90.0, 4, 16.3, 12, STRIKES)
    verdicts = (Verdict("words", 1000, lost, examples=("lost: {}",) * lost),)
    return Report("word-count", delivery, 4711, ("epoch.max_tuples=40",), 1000, reference, disturbed, verdicts,
                  ("seen",), breaches)  # fmt: skip


def test_a_promise_that_was_kept_is_said_in_the_last_line() -> None:
    lines = report().lines()
    assert lines[-1] == "exactly-once kept under 1 kills and 1 other disturbances (the same again: --seed 4711)"
    assert "words: lost 0, duplicated 0, reordered 0 (of 1,000 rows)" in lines
    assert "25 epochs in 90 s and 4 starts (undisturbed 20 s); longest pause 16.3 s, after epoch 12" in lines


def test_a_broken_promise_is_said_with_how_and_with_examples() -> None:
    lines = report(breaches=("sink 'words': 2 rows were lost",), lost=2).lines()
    assert lines[-1].startswith("exactly-once BROKEN")
    assert "broken: sink 'words': 2 rows were lost" in lines
    assert "    lost: {}" in lines


def test_what_was_not_done_and_not_compared_is_never_silent() -> None:
    lines = report().lines()
    assert "note: 2 of 4 disturbances were not done, see above" in lines
    assert "note: sink 'seen' was left out: it keeps no rows to compare" in lines


def test_at_most_once_says_what_it_cost() -> None:
    said = "skipped 2 epochs, which cost 80 tuples"
    assert said in report(Delivery.AT_MOST_ONCE).lines()
    assert said not in report().lines()


def test_the_report_file_holds_everything() -> None:
    written = json.loads(json.dumps(report().to_json()))
    assert written["kept"] is True
    assert written["seed"] == 4711
    assert written["verdicts"][0]["lost"] == 0
    assert written["disturbed"]["longest_pause"] == 16.3
    first, *_, last = written["disturbed"]["strikes"]
    assert first == {"number": 1, "act": "kill -9 of the JVM", "moment": "between-sinks", "epoch": 3,
                     "seconds": 12.346, "done": True, "outcome": ""}  # fmt: skip
    assert (last["done"], last["seconds"]) == (False, None)


def with_gap(seconds: float, gap_goal: bool = False, breaches: tuple[str, ...] = ()) -> Report:
    one = report(breaches=breaches)
    gaps = GapReport(quiet=1.2, struck=seconds, struck_after=7, interval=1.0, slowest_recovery=20.0)
    return replace(one, disturbed=replace(one.disturbed, gaps=gaps), gap_goal=gap_goal)


def test_a_gap_that_was_noticed_is_told_and_a_failure_only_where_that_is_asked_for() -> None:
    for gap_goal in (False, True):
        hidden, noticed = with_gap(2.1, gap_goal), with_gap(2.3, gap_goal)
        assert (hidden.kept, hidden.noticed, hidden.passed) == (True, False, True)
        assert (noticed.kept, noticed.noticed, noticed.passed) == (True, True, not gap_goal)
        assert hidden.lines()[-1].startswith("exactly-once kept under")
        assert noticed.lines()[-1].startswith("exactly-once kept, A GAP WAS NOTICED under")
        lost = with_gap(2.1, gap_goal, ("2 rows were lost",))
        assert (lost.kept, lost.noticed, lost.passed) == (False, False, False)
    written = json.loads(json.dumps(with_gap(2.3, True).to_json()))
    assert (written["passed"], written["kept"], written["noticed"]) == (False, True, True)
    assert (written["disturbed"]["gaps"]["struck"], written["disturbed"]["gaps"]["goal"]) == (2.3, 2.2)
    alone = report().to_json()
    assert (alone["passed"], alone["noticed"], alone["disturbed"]["gaps"]) == (True, None, None)


def test_rescales_are_listed_and_counted_apart() -> None:
    rescaled = Strike(Disturbance(5, Act.RESCALE, 4, operator="counts", instances=5), 13.0, 5, "2 became 5")
    one = report()
    told = replace(one, disturbed=replace(one.disturbed, strikes=(*STRIKES, rescaled)))
    assert told.lines()[-1].startswith("exactly-once kept under 1 kills, 1 rescale and 1 other disturbances")
    last = told.to_json()["disturbed"]["strikes"][-1]
    assert (last["act"], last["done"], last["outcome"]) == ("rescale counts=5", True, "2 became 5")
