from __future__ import annotations

from penstock.bench.figures import Figures, put_in
from penstock.bench.goals import COUNTED_WORDS, NATIVE
from penstock.bench.measuring import Job, Pace, Thoroughness
from penstock.bench.workloads import WORKLOADS

FIGURES = Figures("yahoo", 1000, [2.0, 4.0, 1.0], [3.0, 5.0, 4.0], 900.0, 10_000.0,
                  [[40.0, 90.0, 200.0], [50.0, 80.0, 120.0], [60.0, 70.0, 130.0]], "2026-11-16")  # fmt: skip


def test_every_figure_is_the_median_of_its_runs() -> None:
    assert FIGURES.tuples_per_second == 500
    assert FIGURES.cpu_per_million == 4000
    assert FIGURES.latency == [50.0, 80.0, 130.0]


def test_without_paced_runs_there_is_no_latency() -> None:
    assert Figures("yahoo", 1, [1.0], [1.0], 1.0, None, []).latency == []


def test_figures_can_be_taken_up_by_a_later_run() -> None:
    assert Figures.from_json(FIGURES.as_json()) == FIGURES


def test_what_is_measured_again_replaces_what_was_and_the_order_stays() -> None:
    order = ["a", "yahoo", "z"]
    old = [Figures(name, 1, [1.0], [1.0], 1.0, None, []) for name in ("yahoo", "z")]
    assert put_in(old, FIGURES, order) == [FIGURES, old[1]]
    first = Figures("a", 1, [1.0], [1.0], 1.0, None, [])
    assert put_in([FIGURES, old[1]], first, order) == [first, FIGURES, old[1]]


def test_a_goal_is_held_by_p50_and_by_p99_where_it_names_one() -> None:
    assert NATIVE.is_held([50.0, 140.0, 150.0])
    assert not NATIVE.is_held([50.1, 60.0, 70.0])
    assert not NATIVE.is_held([10.0, 60.0, 150.1])
    assert COUNTED_WORDS.is_held([130.0, 900.0, 1000.0])
    assert (str(NATIVE), str(COUNTED_WORDS)) == ("50/150", "130")


def test_a_job_is_told_to_a_worker_as_it_is() -> None:
    for pace in (None, Pace(runs=2, warm_up=1.5)):
        job = Job("yahoo", "some folder", 10, 2, pace)
        assert Job.from_json(job.as_json()) == job


def test_quick_paced_runs_take_less_than_half_of_three_minutes() -> None:
    pace = Thoroughness.quick().pace
    quick = [each for each in WORKLOADS if each.quick]
    assert len(quick) * (pace.warm_up + pace.runs * pace.seconds) < 90
