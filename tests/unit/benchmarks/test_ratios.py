from __future__ import annotations

import pytest
from side_by_side.ratios import GOALS, Figure, Goal, figure_of, ratio, verdict
from side_by_side.runs import Ran


def test_a_figure_is_the_median_of_the_runs() -> None:
    assert figure_of([Ran(2.0), Ran(10.0), Ran(4.0)], 8.0) == Figure(2.0)


def test_one_run_that_failed_or_was_wrong_leaves_no_figure() -> None:
    assert figure_of([Ran(2.0), Ran(2.0, "wrong result: 1 lost")], 8.0) == Figure(trouble="wrong result: 1 lost")
    assert figure_of([], 8.0).trouble == "not run"


def test_a_ratio_is_how_many_times_as_fast_we_are() -> None:
    assert ratio(Figure(6.0), Figure(2.0)) == 3.0
    assert ratio(Figure(6.0), Figure(trouble="failed")) is None
    assert ratio(None, Figure(2.0)) is None


ALL = Goal("json", 3.0, "3 × every peer")


def test_a_goal_for_all_is_measured_against_the_fastest() -> None:
    found = verdict(ALL, {"json": {"penstock": Figure(6.0), "pyflink": Figure(1.0), "bytewax": Figure(3.0)}})

    assert (found.ratio, found.reached) == (2.0, False)
    assert str(found) == "3 × every peer: no, 2.00 ×"


def test_a_peer_without_a_figure_decides_nothing() -> None:
    found = verdict(ALL, {"json": {"penstock": Figure(6.0), "pyflink": Figure(2.0), "pathway": Figure(trouble="gone")}})

    assert (found.ratio, found.reached) == (3.0, True)


def test_a_goal_for_one_peer_ignores_the_others() -> None:
    goal = Goal("stateless", 2.0, "2 × PyFlink", ("pyflink",))
    figures = {"penstock": Figure(6.0), "pyflink": Figure(2.0), "bytewax": Figure(60.0)}

    assert verdict(goal, {"stateless": figures}).reached


def test_a_goal_may_compare_two_jobs_of_our_own() -> None:
    goal = Goal("batch-function", 3.0, "3 × a function for each tuple", own_job="function")
    results = {"batch-function": {"penstock": Figure(9.0)}, "function": {"penstock": Figure(2.0)}}

    assert verdict(goal, results).ratio == 4.5
    assert verdict(goal, {"batch-function": {"penstock": Figure(9.0)}}).reached is None


@pytest.mark.parametrize("goal", GOALS)
def test_a_goal_of_which_nothing_is_known_is_not_measured(goal: Goal) -> None:
    assert str(verdict(goal, {})).endswith("not measured")
