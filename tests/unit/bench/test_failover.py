"""What is made of what was seen of replicas."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from penstock.bench.failover import FailoverSettings, Measured, ages, blows, busy_cores, gaps_around
from penstock.chaos.schedule import Act
from penstock.cli.bench_failover import run_command, table_of


def test_each_replica_is_killed_in_turn_and_then_frozen_in_turn() -> None:
    planned = blows(3, FailoverSettings(kills=4, interval=0.5))
    assert [one.act for one in planned] == [Act.KILL_ALL] * 4 + [Act.FREEZE] * 4
    assert [one.replica for one in planned] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert planned[0].epoch == 40


def test_around_each_blow_the_longest_gap_counts() -> None:
    delivered = [(0.0, 1), (1.0, 2), (4.0, 3), (4.5, 4), (5.0, 5)]
    assert gaps_around(delivered, [(0.2, 0.8), (0.9, 4.2), (4.6, 4.7)]) == [1.0, 3.0, 0.5]


def test_output_grows_old_until_the_next_epoch_is_delivered() -> None:
    assert ages([(1.0, 0.75), (2.0, 1.5), (5.0, 4.0)]) == [(1.0, 0.25), (2.0, 1.25), (2.0, 0.5), (5.0, 3.5), (5.0, 1.0)]


@pytest.mark.parametrize(("kill", "hidden"), [(0.7, True), (0.8, False)])
def test_a_gap_that_is_longer_than_others_and_an_interval_is_noticed(kill: float, hidden: bool) -> None:
    assert Measured(2, 0.25, 0.5, (0.3, kill), (0.2,), 0.1, 1.0, 1e6).hidden is hidden


def test_costs_are_also_told_as_a_ratio_to_one_replica() -> None:
    one = Measured(1, 0.5, 0.6, (9.0,), (5.0,), 0.1, 0.5, 1e6)
    two = Measured(2, 0.5, 0.6, (0.7,), (0.7,), 0.11, 1.0, 5e5)
    lines = table_of([one, two]).as_markdown().splitlines()
    assert "| 2 | 0.60 s | 0.70 s, at most 0.70 s | 0.70 s, at most 0.70 s | no | 110 ms (×1.10) | " in lines[-1]
    assert "| 1.00 (×2.00) | 500,000 (×0.50) |" in lines[-1]
    assert "×" not in lines[-2]


def test_costs_of_another_run_stand_beside_the_gaps() -> None:
    gaps = Measured(2, 0.5, 0.6, (0.7,), (0.8,), 0.0, 0.0, 0.0)
    costs = Measured(2, 0.5, 0.0, (), (), 0.1, 1.5, 1000.0)
    assert gaps.with_costs_of(costs) == Measured(2, 0.5, 0.6, (0.7,), (0.8,), 0.1, 1.5, 1000.0)
    assert "| not measured | not measured |  | 100 ms |" in table_of([costs]).as_markdown()


def test_cores_are_busy_for_what_was_worked_between_two_looks() -> None:
    assert busy_cores([(10.0, 4.0), (11.0, 9.0), (14.0, 10.0)]) == 1.5
    assert busy_cores([(10.0, 4.0)]) == 0.0


def test_what_was_measured_can_be_taken_up_by_a_later_run() -> None:
    measured = Measured(2, 0.5, 0.7, (0.6, 0.8), (0.7,), 0.1, 0.9, 1000.0, ((0.0, 0.5), (1.0, 0.6)))
    assert Measured.from_json(json.dumps(asdict(measured))) == measured


def test_a_replica_has_the_cores_that_it_is_given() -> None:
    assert run_command(Path("t.yaml"), 1)[-2:] == ["--master", "local[1]"]
    assert "--master" not in run_command(Path("t.yaml"), None)
