from __future__ import annotations

import pytest

from penstock.bench.latency import Commit
from penstock.bench.paper import FIGURES, Point, point_of, variants


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
