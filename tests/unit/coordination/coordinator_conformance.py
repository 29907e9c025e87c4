"""What every coordinator promises, faults included: say how to open it and how to break it in a subclass."""

from __future__ import annotations

import abc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

import pytest

from penstock.coordination.base import MAX_VALUE_BYTES, Coordinator
from penstock.coordination.election import Election
from penstock.coordination.lease import Lease
from penstock.errors import CoordinationError

from ...waiting import wait_until
from .other_process import increment

Answer = TypeVar("Answer")


class Owner(Protocol):
    """Somebody else who holds an ephemeral entry: a process, or what stands for one."""

    def kill(self) -> None: ...

    def freeze(self) -> None: ...

    def thaw_and_see_the_loss(self) -> None: ...


class Surroundings(abc.ABC):
    """A coordinator's outside: whoever else uses it, and what may happen to it."""

    ttl: float
    """Of sessions, leases and elections alike."""

    def __init__(self) -> None:
        self._opened: list[Coordinator] = []

    @abc.abstractmethod
    def connect(self) -> Coordinator:
        """Another session with the same entries."""

    @abc.abstractmethod
    def expire(self, coordinator: Coordinator) -> None:
        """Let a session die while its owner lives."""

    @abc.abstractmethod
    def go_away(self) -> None: ...

    @abc.abstractmethod
    def come_back(self) -> None: ...

    @abc.abstractmethod
    def start_owner(self, key: str, value: str) -> Owner:
        """Somebody who holds an ephemeral entry by now."""

    def open(self) -> Coordinator:
        coordinator = self.connect()
        self._opened.append(coordinator)
        return coordinator

    def tear_down(self) -> None:
        for coordinator in self._opened:
            coordinator.close()


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CoordinatorConformance:
    """The contract of `Coordinator`, as tests. A subclass gives the fixture `surroundings`."""

    @pytest.fixture
    def coordinator(self, surroundings: Surroundings) -> Iterator[Coordinator]:
        yield surroundings.open()
        surroundings.tear_down()

    @pytest.fixture
    def other(self, surroundings: Surroundings, coordinator: Coordinator) -> Coordinator:
        """Another session."""
        return surroundings.open()

    # -- entries --------------------------------------------------------------------------------

    def test_the_first_writer_wins(self, coordinator: Coordinator, other: Coordinator) -> None:
        assert coordinator.create_if_absent("epochs/1", "mine") == "mine"
        assert other.create_if_absent("epochs/1", "yours") == "mine"
        assert other.get("epochs/1") == "mine"

    def test_a_missing_key_is_none(self, coordinator: Coordinator) -> None:
        assert coordinator.get("nothing") is None
        coordinator.create_if_absent("folder/key", "")
        assert coordinator.get("folder") is None
        assert coordinator.get("folder/key") == ""

    def test_keys_are_listed_by_prefix_and_in_order(self, coordinator: Coordinator) -> None:
        for key in ("epochs/2", "epochs/1", "epochs/1/deep", "epoch", "epoch/3", "stop/x"):
            coordinator.create_if_absent(key, "")
        assert coordinator.list("epochs/") == ["epochs/1", "epochs/1/deep", "epochs/2"]
        assert coordinator.list("epochs/1/") == ["epochs/1/deep"]
        assert coordinator.list("epoch") == ["epoch", "epoch/3", "epochs/1", "epochs/1/deep", "epochs/2"]
        assert coordinator.list("epochs/3") == []
        assert len(coordinator.list("")) == 6

    def test_entries_are_keys_with_what_they_hold(self, coordinator: Coordinator) -> None:
        for key, value in (("b/2", "two"), ("b/1", "one"), ("c", "three")):
            coordinator.put(key, value)
        coordinator.create_ephemeral("b/3", "while I live")
        assert list(coordinator.entries("b/").items()) == [("b/1", "one"), ("b/2", "two"), ("b/3", "while I live")]
        assert coordinator.entries("d") == {}

    def test_any_text_can_be_a_key(self, coordinator: Coordinator) -> None:
        plain = ["a", "a/", "a//b", "begin", "/begin", "/", "//", ".", "..", "./.", "%", "%%", "a%2Fb"]
        keys = sorted([*plain, "jürgen/ü ☃", "a b/c?d=e&f", "'\";", "…/…", "100_%/x"])
        for key in keys:
            assert coordinator.create_if_absent(key, f"value of {key}") == f"value of {key}"
        assert coordinator.list("") == keys
        assert [coordinator.get(key) for key in keys] == [f"value of {key}" for key in keys]
        for key in keys:
            coordinator.delete(key)
        assert coordinator.list("") == []

    def test_a_deleted_key_can_be_created_again(self, coordinator: Coordinator) -> None:
        for key in ("k", "round/7/a"):
            coordinator.create_if_absent(key, "old")
            coordinator.delete(key)
            coordinator.delete(key)
            assert coordinator.get(key) is None
            assert coordinator.create_if_absent(key, "new") == "new"

    def test_put_writes_whatever_was_there(self, coordinator: Coordinator, other: Coordinator) -> None:
        coordinator.put("progress/a", "1")
        assert other.get("progress/a") == "1"
        other.put("progress/a", "ü ☃")
        assert coordinator.get("progress/a") == "ü ☃"

    def test_replace_needs_the_expected_value(self, coordinator: Coordinator) -> None:
        assert not coordinator.replace("k", "old", "new")
        assert coordinator.get("k") is None
        coordinator.put("k", "old")
        assert not coordinator.replace("k", "other", "new")
        assert coordinator.get("k") == "old"
        assert coordinator.replace("k", "old", "new")
        assert coordinator.get("k") == "new"

    def test_values_of_the_largest_size_are_kept_and_larger_ones_refused(self, coordinator: Coordinator) -> None:
        largest = "é" * (MAX_VALUE_BYTES // 2)
        assert coordinator.create_if_absent("large", largest) == largest
        assert coordinator.get("large") == largest
        for write in (coordinator.create_if_absent, coordinator.put, coordinator.create_ephemeral):
            with pytest.raises(CoordinationError, match=r"'larger'.*1,000,001 bytes"):
                write("larger", largest + "!")
        assert coordinator.get("larger") is None

    def test_a_key_must_not_be_empty(self, coordinator: Coordinator) -> None:
        with pytest.raises(CoordinationError, match="empty key"):
            coordinator.put("", "x")

    def test_of_many_threads_exactly_one_wins(self, coordinator: Coordinator, other: Coordinator) -> None:
        held: list[str] = []

        def propose(number: int) -> None:
            held.append((coordinator, other)[number % 2].create_if_absent("k", str(number)))

        run_together([lambda n=n: propose(n) for n in range(8)])
        assert len(held) == 8
        assert len(set(held)) == 1

    def test_replacing_from_many_threads_loses_nothing(self, coordinator: Coordinator, other: Coordinator) -> None:
        coordinator.put("count", "0")

        def count(own: Coordinator) -> None:
            for _ in range(10):
                increment(own, "count")

        run_together([lambda own=own: count(own) for own in (coordinator, other, coordinator, other)])
        assert coordinator.get("count") == "40"

    # -- ephemeral entries and sessions ----------------------------------------------------------

    def test_an_ephemeral_entry_goes_when_its_coordinator_is_closed(
        self, coordinator: Coordinator, surroundings: Surroundings
    ) -> None:
        owner = surroundings.connect()
        assert owner.create_ephemeral("replicas/a", "here") == "here"
        assert coordinator.create_ephemeral("replicas/a", "mine") == "here"
        owner.create_if_absent("durable", "stays")
        assert coordinator.list("replicas/") == ["replicas/a"]
        owner.close()
        wait_until(lambda: coordinator.list("replicas/") == [])
        assert coordinator.get("durable") == "stays"
        assert coordinator.create_ephemeral("replicas/a", "mine") == "mine"

    def test_an_ephemeral_entry_outlives_its_time_to_live_while_its_owner_lives(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        coordinator.create_ephemeral("replicas/a", "here")
        until = time.monotonic() + 2 * surroundings.ttl
        wait_until(lambda: other.get("replicas/a") is None or time.monotonic() > until)
        assert other.get("replicas/a") == "here"

    def test_put_leaves_an_ephemeral_entry_ephemeral(
        self, coordinator: Coordinator, surroundings: Surroundings
    ) -> None:
        owner = surroundings.connect()
        owner.create_ephemeral("replicas/a", "1")
        owner.put("replicas/a", "2")
        assert owner.replace("replicas/a", "2", "3")
        assert coordinator.get("replicas/a") == "3"
        owner.close()
        wait_until(lambda: coordinator.get("replicas/a") is None)

    def test_the_entries_of_a_killed_owner_go(self, coordinator: Coordinator, surroundings: Surroundings) -> None:
        owner = surroundings.start_owner("replicas/a", "here")
        assert coordinator.get("replicas/a") == "here"
        owner.kill()
        wait_until(lambda: coordinator.get("replicas/a") is None)
        assert coordinator.list("replicas/") == []
        coordinator.put("replicas/a", "durable now")
        assert coordinator.get("replicas/a") == "durable now"

    def test_the_entries_of_a_frozen_owner_go_and_it_learns_that(
        self, coordinator: Coordinator, surroundings: Surroundings
    ) -> None:
        owner = surroundings.start_owner("replicas/a", "here")
        owner.freeze()
        wait_until(lambda: coordinator.list("replicas/") == [])
        owner.thaw_and_see_the_loss()

    def test_a_session_that_expires_is_noticed(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        losses = Told()
        coordinator.on_expired(losses)
        coordinator.create_ephemeral("replicas/a", "first")
        coordinator.create_if_absent("durable", "stays")
        surroundings.expire(coordinator)
        wait_until(lambda: losses.times)
        wait_until(lambda: other.get("replicas/a") is None)
        assert losses.times == 1
        assert coordinator.get("durable") == "stays"
        assert patiently(lambda: coordinator.create_ephemeral("replicas/a", "second")) == "second"
        assert other.get("replicas/a") == "second"
        surroundings.expire(coordinator)
        wait_until(lambda: losses.times == 2)

    # -- away and back ---------------------------------------------------------------------------

    def test_a_coordinator_that_is_away_says_so_soon_and_works_again_when_it_is_back(
        self, coordinator: Coordinator, surroundings: Surroundings
    ) -> None:
        coordinator.create_if_absent("epochs/1", "agreed")
        surroundings.go_away()
        uses: list[Callable[[], object]] = [
            lambda: coordinator.create_if_absent("epochs/2", "lost?"),
            lambda: coordinator.create_ephemeral("replicas/a", "lost?"),
            lambda: coordinator.put("epochs/1", "changed?"),
            lambda: coordinator.replace("epochs/1", "agreed", "changed?"),
            lambda: coordinator.get("epochs/1"),
            lambda: coordinator.list("epochs/"),
            lambda: coordinator.delete("epochs/1"),
            lambda: coordinator.watch("epochs/", lambda: None),
        ]
        for use in uses:
            began = time.monotonic()
            with pytest.raises(CoordinationError):
                use()
            assert time.monotonic() - began < 5
        surroundings.come_back()
        assert patiently(lambda: coordinator.get("epochs/1")) == "agreed"
        assert coordinator.list("") == ["epochs/1"]
        assert coordinator.create_if_absent("epochs/2", "now") == "now"

    def test_a_short_absence_costs_no_ephemeral_entry(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        losses = Told()
        coordinator.on_expired(losses)
        coordinator.create_ephemeral("replicas/a", "here")
        surroundings.go_away()
        with pytest.raises(CoordinationError):
            coordinator.get("replicas/a")
        surroundings.come_back()
        assert patiently(lambda: other.get("replicas/a")) == "here"
        assert patiently(lambda: coordinator.create_ephemeral("replicas/a", "again")) == "here"
        assert losses.times == 0

    def test_closing_while_it_is_away_raises_nothing(self, surroundings: Surroundings) -> None:
        coordinator = surroundings.connect()
        coordinator.create_ephemeral("replicas/a", "here")
        surroundings.go_away()
        try:
            coordinator.close()
        finally:
            surroundings.come_back()
        with pytest.raises(CoordinationError):
            coordinator.get("replicas/a")

    # -- watches ---------------------------------------------------------------------------------

    def test_every_kind_of_change_is_told(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        told = Told()
        coordinator.watch("replicas/", told)
        owner = surroundings.connect()
        changes: list[Callable[[], object]] = [
            lambda: other.create_if_absent("replicas/a", "1"),
            lambda: coordinator.put("replicas/a", "2"),
            lambda: other.replace("replicas/a", "2", "3"),
            lambda: other.delete("replicas/a"),
            lambda: owner.create_ephemeral("replicas/b", ""),
            lambda: other.create_if_absent("replicas/deep/c", ""),
            lambda: other.put("replicas/deep/c", "x"),
            lambda: other.delete("replicas/deep/c"),
            owner.close,
        ]
        for change in changes:
            before = told.times
            change()
            wait_until(lambda before=before: told.times > before)
        assert coordinator.list("replicas/") == []

    def test_the_death_of_an_owner_is_told(self, coordinator: Coordinator, surroundings: Surroundings) -> None:
        owner = surroundings.start_owner("replicas/a", "here")
        seen: list[list[str]] = []
        coordinator.watch("replicas/", lambda: seen.append(coordinator.list("replicas/")))
        owner.kill()
        wait_until(lambda: [] in seen)

    def test_the_last_change_is_never_lost(self, coordinator: Coordinator, other: Coordinator) -> None:
        seen: list[str | None] = []
        coordinator.watch("progress/", lambda: seen.append(coordinator.get("progress/a")))
        for number in range(200):
            other.put("progress/a", str(number))
        wait_until(lambda: seen and seen[-1] == "199")

    def test_a_cancelled_watch_is_called_no_more(self, coordinator: Coordinator, other: Coordinator) -> None:
        cancelled, kept = Told(), Told()
        watch = coordinator.watch("k", cancelled)
        coordinator.watch("k", kept)
        other.put("k", "1")
        wait_until(lambda: cancelled.times and kept.times)
        watch.cancel()
        before, heard = cancelled.times, kept.times
        other.put("k", "2")
        wait_until(lambda: kept.times > heard)
        assert cancelled.times == before

    def test_a_watch_whose_callback_fails_stays_in_force(self, coordinator: Coordinator, other: Coordinator) -> None:
        calls: list[int] = []

        def fail() -> None:
            calls.append(1)
            raise ValueError("a mistake in the callback")

        coordinator.watch("k", fail)
        for number in range(1, 3):
            other.put("k", str(number))
            wait_until(lambda number=number: len(calls) >= number)

    def test_a_watch_lasts_over_an_absence(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        seen: list[str | None] = []

        def look() -> None:
            with suppress(CoordinationError):
                seen.append(coordinator.get("k"))

        coordinator.watch("k", look)
        surroundings.go_away()
        # Long enough that whoever looks for changes has looked in vain.
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            with pytest.raises(CoordinationError):
                other.put("k", "away")
        surroundings.come_back()
        patiently(lambda: other.put("k", "back"))
        wait_until(lambda: seen and seen[-1] == "back")

    def test_a_watch_lasts_over_an_expired_session(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        told, losses = Told(), Told()
        coordinator.on_expired(losses)
        coordinator.create_ephemeral("replicas/a", "here")
        coordinator.watch("k", told)
        surroundings.expire(coordinator)
        wait_until(lambda: losses.times)
        patiently(lambda: coordinator.get("k"))
        before = told.times
        other.put("k", "after")
        wait_until(lambda: told.times > before)

    # -- leases ----------------------------------------------------------------------------------

    def test_a_lease_has_one_holder_and_is_handed_over(self, coordinator: Coordinator, other: Coordinator) -> None:
        first, second = Lease(coordinator, "leases/x", "first"), Lease(other, "leases/x", "second")
        assert not first.renew()
        assert first.acquire()
        assert first.held
        assert not second.acquire()
        assert not second.held
        assert first.renew()
        first.release()
        assert not first.held
        assert second.acquire()
        assert second.held
        assert (first.term, second.term) == (1, 2)
        assert not first.acquire()

    def test_a_holder_that_was_frozen_learns_that_it_lost_the_lease(
        self, coordinator: Coordinator, other: Coordinator
    ) -> None:
        clock = Clock()
        frozen = Lease(coordinator, "leases/x", "frozen", ttl=5, clock=clock)
        waiting = Lease(other, "leases/x", "waiting", ttl=5, clock=clock)
        assert frozen.acquire()
        assert not waiting.acquire()
        clock.now += 5
        assert not frozen.held
        assert waiting.acquire()
        assert waiting.held
        assert not frozen.renew()
        frozen.release()
        assert waiting.renew()

    def test_a_lease_stays_with_its_holder_while_the_coordinator_is_away_for_a_moment(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        clock = Clock()
        lease = Lease(coordinator, "leases/x", "holder", ttl=5, clock=clock)
        rival = Lease(other, "leases/x", "rival", ttl=5, clock=clock)
        assert lease.acquire()
        assert not rival.acquire()
        surroundings.go_away()
        clock.now += 1
        with pytest.raises(CoordinationError):
            lease.renew()
        assert lease.held
        clock.now += 4
        assert not lease.held
        surroundings.come_back()
        assert patiently(lease.renew)
        assert lease.held
        assert not patiently(rival.acquire)

    # -- elections -------------------------------------------------------------------------------

    def test_one_candidate_leads_and_the_next_one_when_it_resigns(
        self, coordinator: Coordinator, other: Coordinator, surroundings: Surroundings
    ) -> None:
        first, second = (
            Election(coordinator, "master", "first", surroundings.ttl),
            Election(other, "master", "second", surroundings.ttl),
        )
        assert first.leader() is None
        changes: list[bool] = []
        first.campaign(changes.append)
        wait_until(lambda: first.leading)
        second.campaign()
        wait_until(lambda: second.candidates() == ["first", "second"])
        assert second.leader() == "first"
        assert not second.leading
        first.resign()
        assert not first.leading
        assert changes == [True, False]
        wait_until(lambda: second.leading)
        assert first.leader() == "second"
        assert first.candidates() == ["second"]
        assert second.term > first.term
        second.resign()
        assert first.leader() is None

    def test_a_leader_that_is_cut_off_stops_before_another_leads(
        self, coordinator: Coordinator, surroundings: Surroundings
    ) -> None:
        cut_off = surroundings.connect()
        old, new = (
            Election(cut_off, "master", "old", surroundings.ttl),
            Election(coordinator, "master", "new", surroundings.ttl),
        )
        both: list[str] = []
        old.campaign()
        wait_until(lambda: old.leading)
        new.campaign(lambda leads: both.append("both lead") if leads and old.leading else None)
        wait_until(lambda: len(new.candidates()) == 2)
        cut_off.close()
        wait_until(lambda: new.leading)
        assert both == []
        assert not old.leading
        for election in (old, new):
            election.resign()


class Told:
    """A callback that counts its calls."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def patiently(use: Callable[[], Answer]) -> Answer:
    """The answer, from a coordinator that has just come back."""
    answers: list[Answer] = []

    def answered() -> bool:
        with suppress(CoordinationError):
            answers.append(use())
        return bool(answers)

    wait_until(answered)
    return answers[0]


def run_together(tasks: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
