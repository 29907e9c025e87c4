"""Leases with a clock that the test moves; what needs a coordinator's faults is in the conformance suite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordination.lease import Lease
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import CoordinationError

from .coordinator_conformance import Clock


class CutOff(MemoryCoordinator):
    """Does what it is asked once, and then pretends that it did not."""

    cut = False

    def replace(self, key: str, expected: str, value: str) -> bool:
        done = super().replace(key, expected, value)
        if self.cut:
            self.cut = False
            raise CoordinationError("cut off before the answer")
        return done


def test_a_renewal_is_good_for_less_than_the_time_after_which_others_take_over() -> None:
    clock, coordinator = Clock(), MemoryCoordinator()
    holder = Lease(coordinator, "x", "holder", ttl=10, clock=clock)
    rival = Lease(coordinator, "x", "rival", ttl=10, clock=clock)
    assert holder.acquire()
    assert not rival.acquire()
    clock.now = 7.4
    assert holder.held
    clock.now = 7.6
    assert not holder.held
    assert not rival.acquire()
    clock.now = 8.6
    assert rival.acquire()


def test_a_holder_counts_from_before_a_slow_write() -> None:
    clock = Clock()

    class Slow(MemoryCoordinator):
        def replace(self, key: str, expected: str, value: str) -> bool:
            done = super().replace(key, expected, value)
            clock.now += 3
            return done

    lease = Lease(Slow(), "x", "holder", ttl=4, clock=clock)
    assert lease.acquire()
    assert not lease.held


def test_a_contender_counts_from_its_own_first_look() -> None:
    clock, coordinator = Clock(), MemoryCoordinator()
    assert Lease(coordinator, "x", "dead", ttl=10, clock=clock).acquire()
    clock.now = 100
    late = Lease(coordinator, "x", "late", ttl=10, clock=clock)
    assert not late.acquire()
    clock.now = 109
    assert late.acquire()


def test_every_renewal_makes_contenders_wait_anew() -> None:
    clock, coordinator = Clock(), MemoryCoordinator()
    holder = Lease(coordinator, "x", "holder", ttl=10, clock=clock)
    rival = Lease(coordinator, "x", "rival", ttl=10, clock=clock)
    assert holder.acquire()
    for _ in range(20):
        clock.now += 5
        assert not rival.acquire()
        assert holder.renew()
    assert holder.term == 1


def test_two_holders_of_one_name_are_not_taken_for_each_other() -> None:
    coordinator = MemoryCoordinator()
    first, restarted = Lease(coordinator, "x", "replica-1"), Lease(coordinator, "x", "replica-1")
    assert first.acquire()
    assert not restarted.acquire()


def test_a_renewal_whose_answer_was_lost_does_not_cost_the_lease() -> None:
    coordinator = CutOff()
    lease = Lease(coordinator, "x", "holder")
    assert lease.acquire()
    coordinator.cut = True
    with pytest.raises(CoordinationError):
        lease.renew()
    assert lease.renew()
    assert lease.held


def test_an_acquisition_whose_answer_was_lost_is_found_again() -> None:
    coordinator = CutOff()
    lease = Lease(coordinator, "x", "holder")
    coordinator.cut = True
    with pytest.raises(CoordinationError):
        lease.acquire()
    assert not lease.held
    assert lease.acquire()
    assert lease.term == 1


@given(st.lists(st.tuples(st.sampled_from(["acquire", "renew", "release", "wait"]), st.integers(0, 2)), max_size=60))
def test_there_are_never_two_holders_whatever_happens(steps: list[tuple[str, int]]) -> None:
    clock, store = Clock(), MemoryStore()
    leases = [Lease(MemoryCoordinator(store), "x", str(number), ttl=4, clock=clock) for number in range(3)]
    terms: list[int] = []
    for verb, number in steps:
        if verb == "wait":
            clock.now += number + 0.5
        else:
            getattr(leases[number], verb)()
        held = [lease for lease in leases if lease.held]
        assert len(held) <= 1
        terms += [lease.term for lease in held]
    assert terms == sorted(terms)
