"""ZooKeeper passes the suite: a real server, killed for real."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.coordination.zookeeper import ZookeeperCoordinator
from penstock.errors import CoordinationError

from ...servers.zookeeper import ZookeeperServer
from ...unit.coordination.coordinator_conformance import patiently
from ...unit.coordination.process_conformance import ProcessConformance
from ...unit.coordination.process_surroundings import ProcessSurroundings
from ...waiting import wait_until

pytestmark = pytest.mark.by_itself

TTL_SECONDS = 2.0


class ZookeeperSurroundings(ProcessSurroundings):
    ttl = TTL_SECONDS

    def __init__(self, server: ZookeeperServer) -> None:
        super().__init__()
        self.server = server
        self.root = f"/tests/{uuid.uuid4().hex}"
        self.url = f"zookeeper://{server.hosts}{self.root}"

    def expire(self, coordinator: Coordinator) -> None:
        """Whoever has a session's password can end it; its owner is told that it has expired."""
        assert isinstance(coordinator, ZookeeperCoordinator)
        same = KazooClient(self.server.hosts, client_id=coordinator._connection.session)
        same.start()
        same.stop()
        same.close()

    def go_away(self) -> None:
        self.server.kill()

    def come_back(self) -> None:
        self.server.start()


@pytest.fixture
def surroundings(zookeeper: ZookeeperServer) -> Iterator[ZookeeperSurroundings]:
    made = ZookeeperSurroundings(zookeeper)
    yield made
    made.tear_down()


class TestZookeeperCoordinator(ProcessConformance):
    """The fixture `surroundings` is this module's."""


def test_a_root_is_a_world_of_its_own(zookeeper: ZookeeperServer) -> None:
    one, two = (open_coordinator(f"zookeeper://{zookeeper.hosts}/roots/{name}") for name in ("one", "two"))
    one.put("k", "1")
    assert two.get("k") is None
    assert two.list("") == []
    for coordinator in (one, two):
        coordinator.close()


def test_folders_within_folders_go_with_their_last_entry(surroundings: ZookeeperSurroundings) -> None:
    coordinator = surroundings.open()
    for number in range(3):
        coordinator.create_if_absent(f"round/run/{number}/0", "")
    coordinator.create_if_absent("round/run/2/1", "")
    for number in range(3):
        coordinator.delete(f"round/run/{number}/0")
    assert coordinator.list("round/") == ["round/run/2/1"]
    client = KazooClient(surroundings.server.hosts)
    client.start()
    assert client.get_children(surroundings.root) == ["round%2Frun%2F2"]
    client.stop()
    client.close()


def test_an_owner_that_does_not_come_back_after_a_restart_of_the_server_loses_its_session(
    surroundings: ZookeeperSurroundings,
) -> None:
    coordinator, other = surroundings.open(), surroundings.open()
    losses: list[str] = []
    coordinator.on_expired(lambda: losses.append("lost"))
    coordinator.create_ephemeral("replicas/a", "first")
    coordinator.create_if_absent("epochs/1", "agreed")
    owner = surroundings.start_owner("replicas/b", "here")
    owner.freeze()
    with surroundings.server.away():
        pass
    wait_until(lambda: patiently(lambda: other.get("replicas/b")) is None)
    assert patiently(lambda: coordinator.get("epochs/1")) == "agreed"
    # On a machine that is too busy to come back in time, the other owner loses its session, too; then it is told.
    kept = patiently(lambda: other.get("replicas/a")) == "first"
    wait_until(lambda: kept or losses)
    assert kept != bool(losses)
    owner.thaw_and_see_the_loss()


def test_a_server_that_hangs_is_given_up_in_time_and_found_again(surroundings: ZookeeperSurroundings) -> None:
    coordinator = surroundings.open()
    coordinator.put("k", "before")
    surroundings.server.freeze()
    try:
        began = time.monotonic()
        with pytest.raises(CoordinationError):
            coordinator.get("k")
        assert time.monotonic() - began < 10
    finally:
        surroundings.server.thaw()
    assert patiently(lambda: coordinator.get("k")) == "before"


def test_nobody_at_the_address_is_said_within_seconds(tmp_path: Path) -> None:
    silent = ZookeeperServer(tmp_path / "never-started")
    began = time.monotonic()
    with pytest.raises(CoordinationError, match=f"no ZooKeeper server answers at {silent.hosts}.*start one"):
        open_coordinator(f"zookeeper://{silent.hosts}/penstock")
    assert time.monotonic() - began < 15
