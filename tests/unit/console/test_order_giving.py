"""Orders that a node gives by itself, as the command line gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.console.commands import Command, Verb, words_for
from penstock.console.desired import Wanted
from penstock.console.order_giving import give_order
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import EVERYTHING, Orders


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/orders.sqlite"


def give(address: str, replicas: int = 2, **command: str) -> str:
    wanted = Wanted("t", "0" * 64, "topology.yaml", replicas=replicas)
    given = Command.model_validate(command)
    return give_order(wanted, address, given.verb, words_for(given) or ())


def frozen(address: str, replica: str) -> tuple[str, ...]:
    coordinator = open_coordinator(address)
    try:
        return Orders(coordinator).frozen(replica)
    finally:
        coordinator.close()


def test_a_replica_is_frozen_and_goes_on(address: str) -> None:
    assert give(address, verb="freeze", replica="2") == "replica 2 is frozen"
    assert give(address, verb="freeze", replica="2") == "replica 2 was frozen already"
    assert (frozen(address, "1"), frozen(address, "2")) == ((), (EVERYTHING,))
    assert give(address, verb="unfreeze") == "replica 1 was not frozen\nreplica 2 goes on"
    assert frozen(address, "2") == ()


def test_one_operator_is_frozen(address: str) -> None:
    assert give(address, replicas=1, verb="freeze", operator="split") == "split of t is frozen"
    assert frozen(address, "1") == ("split",)
    assert give(address, verb="unfreeze", operator="counts", replica="1") == "counts of replica 1 was not frozen"
    assert give(address, replicas=1, verb="unfreeze") == "t goes on"


@pytest.mark.parametrize(("interval", "seconds", "said"), [
    ("500ms", 0.5, "an epoch every 0.5 s"),
    ("0s", 0.0, "no pause between epochs"),
    ("default", None, "between epochs it waits as its file says"),
])  # fmt: skip
def test_another_interval(address: str, interval: str, seconds: float | None, said: str) -> None:
    assert give(address, verb=Verb.INTERVAL, interval=interval) == said
    coordinator = open_coordinator(address)
    assert Orders(coordinator).interval() == seconds
    coordinator.close()


def test_of_the_intervals_of_several_operators_the_longest_counts(address: str) -> None:
    assert give(address, verb=Verb.INTERVAL, interval="2s", operator="split") == "an epoch every 2 s"
    assert give(address, verb=Verb.INTERVAL, interval="500ms", operator="counts") == "an epoch every 2 s"
    assert give(address, verb=Verb.INTERVAL, interval="default", operator="split") == "an epoch every 0.5 s"
