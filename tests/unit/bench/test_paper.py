from __future__ import annotations

import pytest

from penstock.bench.latency import Commit
from penstock.bench.paper import FIGURES, PAPER_LINES, Point, left_to_measure, merged, point_of, variants
from penstock.cli.bench_paper import table_of


def test_what_is_delivered_is_counted_from_where_it_is_warm() -> None:
    # Tuples are due at 1000 a second from moment 0; the third epoch comes late.
    commits = [Commit(0, 1000, 0.0, 1500.0), Commit(1000, 2000, 0.0, 2100.0), Commit(2000, 3000, 0.0, 4100.0)]
    point = point_of(commits, 1000, skipped=2000)
    assert point == Point(1000, pytest.approx(500.0), pytest.approx(4100 - 2499.5))


def test_without_anything_before_it_is_counted_from_when_the_first_was_due() -> None:
    assert point_of([Commit(0, 1000, 500.0, 2500.0)], 1000, skipped=0).delivered == pytest.approx(500.0)


def test_what_is_in_two_figures_is_measured_once() -> None:
    chosen = variants([2, 3])
    assert len(chosen) == len(set(chosen)) < len(FIGURES[2]) + len(FIGURES[3])
    assert set(chosen) == {*FIGURES[2], *FIGURES[3]}


def test_what_is_found_is_not_measured_again() -> None:
    one, other = FIGURES[5][:2]
    found = {one: [Point(25_000.0, 1.0, 1.0)], other: [Point(25_000.0, 1.0, 1.0), Point(50_000.0, 1.0, 1.0)]}
    assert left_to_measure([one, other], [25_000, 50_000], found) == [(one, 50_000)]
    assert left_to_measure([one], [50_000, 25_000], {}) == [(one, 50_000), (one, 25_000)]


def test_points_of_other_rates_stay_and_of_the_same_rate_the_new_one_counts() -> None:
    low, high, new = Point(25_000.0, 1.0, 1.0), Point(50_000.0, 1.0, 1.0), Point(50_000.0, 2.0, 2.0)
    assert merged([high], [low]) == [low, high]
    assert merged([low, high], [new]) == [low, new]


def test_figures_have_what_the_paper_says_of_others() -> None:
    said = {(figure, str(line)): line.sustained for figure, lines in PAPER_LINES.items() for line in lines}
    assert said == {(2, "×1, Storm with acking"): 15_000, (5, "×1, Trident"): 55_000}
    assert all(line.workload in {variant.workload for variant in FIGURES[figure]}
               for figure, lines in PAPER_LINES.items() for line in lines)  # fmt: skip


def test_where_all_that_was_offered_was_delivered_more_may_be_possible() -> None:
    one, other = FIGURES[5][:2]
    found = {one: [Point(25_000, 25_010.0, 1.0), Point(100_000, 98_290.0, 1.0)],
             other: [Point(25_000, 25_010.0, 1.0), Point(100_000, 61_000.0, 1.0)]}  # fmt: skip
    assert [row[3] for row in table_of([5], found).rows[:2]] == ["≥ 98,290", "61,000"]
