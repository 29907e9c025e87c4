"""`penstock bench` as it measures, in processes of its own; with so few tuples that its figures say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.bench.figures import Figures
from penstock.bench.measuring import Job, Pace, measured
from penstock.bench.scaling import Size, chain
from penstock.errors import DeliveryError


def test_a_worker_gives_all_figures_of_a_workload(tmp_path: Path) -> None:
    pace = Pace(rate=500.0, runs=2, seconds=4.0, warm_up=1.0)
    found = measured(Job("custom-tuple", str(tmp_path), 2000, 3, pace))
    assert (found.workload, found.tuples, found.rate) == ("custom-tuple", 2000, 500.0)
    assert len(found.seconds) == len(found.cpu_seconds) == 3
    assert all(0.01 < each < 300 for each in (*found.seconds, *found.cpu_seconds))
    assert 100 < found.peak_mb < 20_000
    assert len(found.latency_ms) == 2
    for p50, p95, p99 in found.latency_ms:
        assert 0 < p50 <= p95 <= p99 < 60_000
    assert found.date
    assert Figures.from_json(found.as_json()) == found


def test_a_worker_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match=r"(?s)no-such-workload ended with 1:.*StopIteration"):
        measured(Job("no-such-workload", str(tmp_path), 1, 1, None))


def test_spark_computes_every_operator_of_a_chain(project: Any, tmp_path: Path) -> None:
    # Four filters, and three hashes of which each is of the one before.
    plan = project.plan(chain(Size(1000, 8), tmp_path))
    assert plan.count("= none)") >= 4
    assert plan.count("hash(payload") >= 3
