"""Elections; those with processes that die are in the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.coordination.election import Election
from penstock.coordination.lease import Holding
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import CoordinationError

from ...waiting import wait_until

TTL = 0.4


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def election(store: MemoryStore) -> Iterator[Election]:
    made = Election(MemoryCoordinator(store), "master", "one", TTL)
    yield made
    store.come_back()
    made.resign()


def test_a_leader_without_a_coordinator_stops_leading_and_leads_again_when_it_is_back(
    election: Election, store: MemoryStore
) -> None:
    changes: list[bool] = []
    election.campaign(changes.append)
    wait_until(lambda: election.leading)
    store.go_away()
    wait_until(lambda: changes == [True, False])
    assert not election.leading
    store.come_back()
    wait_until(lambda: changes == [True, False, True])
    assert election.term == 1


def test_a_candidate_whose_session_expired_is_listed_again(election: Election, store: MemoryStore) -> None:
    election.campaign()
    wait_until(lambda: election.leader() == "one")
    store.expire(store.coordinators[0])
    wait_until(lambda: election.candidates() == ["one"])


def test_a_leader_that_has_died_leads_no_more(store: MemoryStore, election: Election) -> None:
    election.campaign()
    wait_until(lambda: election.leading)
    onlooker = Election(MemoryCoordinator(store), "master")
    assert onlooker.leader() == "one"
    store.coordinators[0].close()
    assert onlooker.leader() is None
    assert onlooker.candidates() == []


def test_a_candidate_campaigns_once_at_a_time(election: Election) -> None:
    election.resign()
    election.campaign()
    with pytest.raises(CoordinationError, match="'one' campaigns already"):
        election.campaign()
    election.resign()
    election.campaign()
    wait_until(lambda: election.leading)


def test_a_leader_does_not_wake_itself_with_its_own_renewals(store: MemoryStore, election: Election) -> None:
    election.campaign()
    wait_until(lambda: election.leading)

    rival = Election(MemoryCoordinator(store), "other", "rival", TTL)
    rival.campaign()

    def renewals(name: str) -> int:
        entry = store.entries.get(f"elections/{name}/leader")
        return 0 if entry is None else Holding.from_json(entry.value).renewals

    # Both renew four times in the time to live; the first has had a little more time.
    wait_until(lambda: renewals("other") >= 4)
    assert renewals("master") < 12
    rival.resign()
