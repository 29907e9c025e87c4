from __future__ import annotations

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.replication.divergence import Divergence, are_alike, find_divergence
from penstock.replication.roster import Roster

COMPARED = {"parse": "parse", "score": "score", "out": "sink out"}


def test_replicas_that_agree_do_not_diverge() -> None:
    assert find_divergence(5, COMPARED, {}) is None
    assert find_divergence(5, COMPARED, {"1": {"out": "3:a"}}) is None
    assert find_divergence(5, COMPARED, {"1": {"out": "3:a"}, "2": {"out": "3:a"}}) is None


def test_the_first_operator_that_differs_is_named() -> None:
    one = {"parse": "9:1", "score": "9:2", "out": "3:a"}
    other = {"parse": "9:1", "score": "9:3", "out": "3:b"}
    found = find_divergence(5, COMPARED, {"1": one, "2": other})
    assert found == Divergence(5, "score", ("1", "2"))
    assert "replicas 1 and 2 differ in epoch 5, first in 'score'" in str(found)


@pytest.mark.parametrize(("node", "why"), [
    ("score", "use context.time and context.random"),
    ("sink out", "it receives something else, and all code before it has given the same"),
    ("source words", "it does not give the same tuples when it is read again"),
])  # fmt: skip
def test_what_is_said_fits_who_is_named(node: str, why: str) -> None:
    assert why in str(Divergence(5, node, ("1", "2")))


def test_any_of_three_may_be_the_one_that_differs() -> None:
    found = {"1": {"out": "3:a"}, "2": {"out": "3:a"}, "3": {"out": "3:b"}}
    assert find_divergence(5, COMPARED, found) == Divergence(5, "sink out", ("1", "2", "3"))


@pytest.mark.parametrize(("one", "other"), [
    ("2:ab 3.3000000000000003/6.6", "2:ab 3.3/6.6000000000000005"),
    # Sums that cancel out leave nothing but the last digits.
    ("2:ab -5.551115123125783E-17/2.7E-17", "2:ab 0.0/0.0"),
    ("2:ab Infinity/Infinity", "2:ab Infinity/Infinity"),
    ("2:ab NaN/Infinity", "2:ab Infinity/Infinity"),
])  # fmt: skip
def test_the_last_digits_of_sums_may_differ(one: str, other: str) -> None:
    assert are_alike(one, other)
    assert are_alike(other, one)


@pytest.mark.parametrize(("one", "other"), [
    ("2:ab 3.3/6.6", "2:ac 3.3/6.6"),
    ("2:ab 3.3/6.6", "3:ab 3.3/6.6"),
    ("2:ab 3.3/6.6", "2:ab 3.30002/6.6"),
    ("2:ab 3.3/6.6", "2:ab 3.3/6.60002"),
    ("2:ab 3.3/6.6", "2:ab Infinity/Infinity"),
    ("2:ab 3.3/6.6 1.0/1.0", "2:ab 3.3/6.6 1.1/1.0"),
    ("2:ab 3.3/6.6", "2:ab"),
])  # fmt: skip
def test_all_else_may_not(one: str, other: str) -> None:
    assert not are_alike(one, other)
    assert not are_alike(other, one)


def test_whoever_comes_second_finds_it_and_all_can_see_it() -> None:
    coordinator = MemoryCoordinator()
    roster = Roster(coordinator)
    assert roster.compare("1", "v1", 5, COMPARED, {"out": "3:a"}) is None
    assert roster.compare("2", "v1", 5, COMPARED, {"out": "3:a"}) is None
    assert roster.divergence() is None
    roster.compare("1", "v1", 6, COMPARED, {"out": "3:a"})
    assert roster.compare("2", "v1", 6, COMPARED, {"out": "3:b"}) == Divergence(6, "sink out", ("1", "2"))
    roster.compare("1", "v1", 7, COMPARED, {"out": "0:0"})
    roster.compare("2", "v1", 7, COMPARED, {"out": "1:7"})
    assert roster.divergence() == Divergence(6, "sink out", ("1", "2"))


def test_replicas_of_another_version_may_differ() -> None:
    roster = Roster(MemoryCoordinator())
    assert roster.compare("1", "v1", 5, COMPARED, {"out": "3:a"}) is None
    assert roster.compare("2", "v2", 5, COMPARED, {"out": "3:b"}) is None
    assert roster.compare("3", "v2", 5, COMPARED, {"out": "3:c"}) == Divergence(5, "sink out", ("2", "3"))


def differ(roster: Roster, version: str, epoch: int) -> None:
    for name, digest in (("1", "3:a"), ("2", "3:b")):
        roster.compare(name, version, epoch, COMPARED, {"out": digest})


def test_another_version_has_not_differed_yet_and_is_told_when_it_does() -> None:
    roster = Roster(MemoryCoordinator())
    roster.agree_on("v1")
    differ(roster, "v1", 6)
    assert roster.divergence() == Divergence(6, "sink out", ("1", "2"))
    roster.open_to_new_version()
    assert roster.divergence() is None
    # The last of the old ones still run.
    differ(roster, "v1", 7)
    assert roster.divergence() == Divergence(7, "sink out", ("1", "2"))
    roster.agree_on("v2")
    assert roster.divergence() is None
    differ(roster, "v2", 9)
    assert roster.divergence() == Divergence(9, "sink out", ("1", "2"))
    roster.open_to_new_version()
    roster.agree_on("v1")
    assert roster.divergence() is None


def test_a_topology_that_begins_anew_has_not_differed_yet() -> None:
    roster = Roster(MemoryCoordinator())
    roster.agree_on("v1")
    differ(roster, "v1", 6)
    roster.forget()
    roster.adopt("v1")
    assert roster.divergence() is None
    differ(roster, "v1", 1)
    assert roster.divergence() == Divergence(1, "sink out", ("1", "2"))


def test_old_digests_are_forgotten() -> None:
    coordinator = MemoryCoordinator()
    roster = Roster(coordinator)
    for epoch in range(1, 301):
        roster.compare("1", "v1", epoch, COMPARED, {"out": "1:1"})
    assert len(coordinator.list("digests/")) <= 200
