"""`penstock status`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.orders import FIRST, Orders
from penstock.epochs.record import EpochRecord
from penstock.replication.replica import opened_roster
from penstock.replication.roster import FROZEN, PARKED, Member, Told
from penstock.runtime.state_folder import Committed, StateFolder

from .typed import enter_project, penstock

PAIR = """\
topology: pair
replicas: 2
cells: any
sources:
  visits: {file: visits.csv, schema: "user string, page string"}
sinks:
  out: {from: visits, file: out/visits.jsonl}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    enter_project(tmp_path, monkeypatch, PAIR, visits="ann,/home\n")
    home = StateFolder(tmp_path / ".penstock/pair")
    home.path.mkdir(parents=True)
    return home


def test_one_of_two_that_was_started_is_not_safe_by_itself(home: StateFolder) -> None:
    with opened_roster(home.coordinator) as roster:
        roster.join(Member("1", "local", "here", 41, "a"))
        roster.tell("1", Told("a", 9, 9))
        assert penstock("status", ".").stdout.splitlines()[0] == "pair: 1/2 safe, down, epoch 9"


def test_a_replica_that_is_parked_is_shown_with_its_reason(home: StateFolder) -> None:
    with opened_roster(home.coordinator) as roster:
        roster.join(Member("1", "local", "here", 41, "a"))
        roster.tell("1", Told("a", 9, 9))
        roster.tell("2", Told("b", 7, how=PARKED, why="the disk is full"))
        shown, told = penstock("status", ".").stdout, json.loads(penstock("status", ".", "--json").stdout)
    assert shown.splitlines()[0] == "pair: 1/2 safe, parked, epoch 9"
    (line,) = [line for line in shown.splitlines() if line.startswith("2 ")]
    assert "parked" in line and "the disk is full" in line
    assert told["status"] == "1/2 safe, parked"
    assert [(view["phase"], view["why"]) for view in told["replicas"]] == [("safe", ""), ("parked", "the disk is full")]


def test_a_replica_that_is_frozen_is_shown_with_the_operator_that_is(home: StateFolder) -> None:
    with opened_roster(home.coordinator) as roster:
        for name in ("1", "2"):
            roster.join(Member(name, "local", "here", 41, name))
        roster.tell("1", Told("1", 9, 9))
        roster.tell("2", Told("2", 7, how=FROZEN))
        coordinator = open_coordinator(home.coordinator)
        for operator in ("counts", "split"):
            Orders(coordinator).freeze("2", operator)
        coordinator.close()
        shown = penstock("status", ".").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("2 ")]
    assert line.rstrip().endswith("counts, split are frozen")


@pytest.mark.parametrize(("operator", "said"), [("*", "frozen"), ("counts", "counts is frozen")])
def test_a_run_without_replicas_that_is_frozen_says_what_it_has_received(
    home: StateFolder, operator: str, said: str
) -> None:
    alone = ("status", ".", "--set", "replicas=1")
    home.record(Committed(3))
    coordinator = open_coordinator(home.coordinator)
    log = EpochLog(coordinator)
    for epoch in range(1, 6):
        log.propose(EpochRecord(epoch, 0, {"visits": {}}, {"visits": 1}))
    Orders(coordinator).freeze(FIRST, operator)
    coordinator.close()
    with home.held(0.0):
        assert f", {said} with 2 epochs to do, epoch 3" in penstock(*alone).stdout
        assert json.loads(penstock(*alone, "--json").stdout)["status"].endswith(f", {said} with 2 epochs to do")
    assert "frozen" not in penstock(*alone).stdout
