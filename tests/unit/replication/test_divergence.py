from __future__ import annotations

from penstock.coordination.memory import MemoryCoordinator
from penstock.replication.divergence import Divergence, find_divergence
from penstock.replication.roster import Roster

ORDER = ["parse", "score", "sink out"]


def test_replicas_that_agree_do_not_diverge() -> None:
    assert find_divergence(5, ORDER, {}) is None
    assert find_divergence(5, ORDER, {"1": {"sink out": "3:a"}}) is None
    assert find_divergence(5, ORDER, {"1": {"sink out": "3:a"}, "2": {"sink out": "3:a"}}) is None


def test_the_first_operator_that_differs_is_named() -> None:
    one = {"parse": "9:1", "score": "9:2", "sink out": "3:a"}
    other = {"parse": "9:1", "score": "9:3", "sink out": "3:b"}
    found = find_divergence(5, ORDER, {"1": one, "2": other})
    assert found == Divergence(5, "score", ("1", "2"))
    assert "replicas 1 and 2 differ in epoch 5, first in 'score'" in str(found)


def test_whoever_comes_second_finds_it_and_all_can_see_it() -> None:
    coordinator = MemoryCoordinator()
    roster = Roster(coordinator)
    assert roster.compare("1", "v1", 5, ORDER, {"sink out": "3:a"}) is None
    assert roster.compare("2", "v1", 5, ORDER, {"sink out": "3:a"}) is None
    assert roster.divergence() is None
    roster.compare("1", "v1", 6, ORDER, {"sink out": "3:a"})
    assert roster.compare("2", "v1", 6, ORDER, {"sink out": "3:b"}) == Divergence(6, "sink out", ("1", "2"))
    roster.compare("1", "v1", 7, ORDER, {"sink out": "0:0"})
    roster.compare("2", "v1", 7, ORDER, {"sink out": "1:7"})
    assert roster.divergence() == Divergence(6, "sink out", ("1", "2"))


def test_replicas_of_another_version_may_differ() -> None:
    roster = Roster(MemoryCoordinator())
    assert roster.compare("1", "v1", 5, ORDER, {"sink out": "3:a"}) is None
    assert roster.compare("2", "v2", 5, ORDER, {"sink out": "3:b"}) is None
    assert roster.compare("3", "v2", 5, ORDER, {"sink out": "3:c"}) == Divergence(5, "sink out", ("2", "3"))


def test_old_digests_are_forgotten() -> None:
    coordinator = MemoryCoordinator()
    roster = Roster(coordinator)
    for epoch in range(1, 301):
        roster.compare("1", "v1", epoch, ORDER, {"sink out": "1:1"})
    assert len(coordinator.list("digests/")) <= 200
