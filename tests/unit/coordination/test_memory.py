"""The in-memory coordinator passes the suite."""

from __future__ import annotations

import pytest

from penstock.coordination.base import Coordinator
from penstock.coordination.memory import MemoryCoordinator, MemoryStore

from ...waiting import wait_until
from .coordinator_conformance import CoordinatorConformance, Surroundings


class MemoryOwner:
    """Stands for another process: in memory a death and a freeze are the same, the end of a session."""

    def __init__(self, coordinator: MemoryCoordinator, key: str, value: str) -> None:
        self._coordinator = coordinator
        self._losses: list[str] = []
        self._coordinator.on_expired(lambda: self._losses.append("expired"))
        self._coordinator.create_ephemeral(key, value)

    def kill(self) -> None:
        self._coordinator.store.expire(self._coordinator)

    def freeze(self) -> None:
        self._coordinator.store.expire(self._coordinator)

    def thaw_and_see_the_loss(self) -> None:
        wait_until(lambda: self._losses == ["expired"])


class MemorySurroundings(Surroundings):
    ttl = 0.4

    def __init__(self) -> None:
        super().__init__()
        self._store = MemoryStore()

    def connect(self) -> MemoryCoordinator:
        return MemoryCoordinator(self._store)

    def expire(self, coordinator: Coordinator) -> None:
        assert isinstance(coordinator, MemoryCoordinator)
        self._store.expire(coordinator)

    def go_away(self) -> None:
        self._store.go_away()

    def come_back(self) -> None:
        self._store.come_back()

    def start_owner(self, key: str, value: str) -> MemoryOwner:
        coordinator = self.open()
        assert isinstance(coordinator, MemoryCoordinator)
        return MemoryOwner(coordinator, key, value)


class TestMemoryCoordinator(CoordinatorConformance):
    @pytest.fixture
    def surroundings(self) -> MemorySurroundings:
        return MemorySurroundings()


def test_a_coordinator_without_a_store_has_one_of_its_own() -> None:
    MemoryCoordinator().put("k", "mine")
    assert MemoryCoordinator().get("k") is None
