"""On an address that other machines reach, nobody comes in without a token."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI

from penstock.console import server
from penstock.console.desired import Wanted
from penstock.console.home import ConsoleHome
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, Nodes, NodeTaken
from penstock.console.server import ConsoleSettings, _access
from penstock.console.tokens import Role, Tokens
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import ConsoleError

from ...waiting import wait_until


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "console.example.org"])
def test_off_loopback_tokens_are_required(tmp_path: Path, host: str) -> None:
    coordinator = MemoryCoordinator()
    settings = ConsoleSettings(ConsoleHome(tmp_path), "memory:", host=host)
    with pytest.raises(ConsoleError, match=f"{host} can be reached from other machines, so tokens are needed"):
        _access(settings, coordinator)
    Tokens(coordinator).create("old", Role.OPERATOR, seconds=-1)
    with pytest.raises(ConsoleError, match="there are none: make one with `penstock token create"):
        _access(settings, coordinator)
    Tokens(coordinator).create("ann", Role.VIEWER)
    assert not _access(settings, coordinator).open


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_on_loopback_they_are_not(tmp_path: Path, host: str) -> None:
    assert _access(ConsoleSettings(ConsoleHome(tmp_path), "memory:", host=host), MemoryCoordinator()).open


@pytest.mark.parametrize(("coordinator", "host", "cut_off"), [
    ("zookeeper://zk:2181/penstock", "127.0.0.1", True),
    ("zookeeper://zk:2181/penstock", "m1.example.org", False),
    ("sqlite:/home/console.sqlite", "127.0.0.1", False),
])  # fmt: skip
def test_a_master_that_others_cannot_reach_knows_it(
    tmp_path: Path, coordinator: str, host: str, cut_off: bool
) -> None:
    assert ConsoleSettings(ConsoleHome(tmp_path), coordinator, host=host).is_cut_off is cut_off


@pytest.mark.parametrize(("coordinator", "log"), [
    ("sqlite:{}/shared/console.sqlite", "sqlite:{}/shared/spread/t.sqlite"),
    ("zookeeper://zk:2181/penstock", "zookeeper://zk:2181/penstock/topologies"),
])  # fmt: skip
def test_nodes_with_homes_of_their_own_share_the_log_of_a_spread_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coordinator: str, log: str
) -> None:
    monkeypatch.setattr(NodeSupervisor, "join", lambda self, turned_away: None)
    monkeypatch.setattr(NodeSupervisor, "run", lambda self: None)
    made: list[NodeSupervisor] = []
    monkeypatch.setattr(server, "NodeSupervisor", lambda *given: made.append(NodeSupervisor(*given)) or made[-1])
    for name in ("one", "two"):
        settings = ConsoleSettings(ConsoleHome(tmp_path / name), coordinator.format(tmp_path), node=name)
        with ExitStack() as resources:
            server._start_supervisor(settings, MemoryCoordinator(), lambda _: None, resources, lambda _: None)
    spread = Wanted("t", "", "topology.yaml", replicas=2, spread=True)
    assert [each._calling.shared_log(spread) for each in made] == [log.format(tmp_path)] * 2


def test_two_masters_of_one_host_name_and_port_are_two_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for process in (7, 8):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        names.add(server._candidate(ConsoleSettings(ConsoleHome(tmp_path), "memory:")).name)
    assert len(names) == 2


def test_without_tokens_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(server, "open_coordinator", lambda _: MemoryCoordinator(store))
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ConsoleError, match="tokens are needed"):
        server.serve(ConsoleSettings(ConsoleHome(tmp_path), "memory:", host="0.0.0.0", port=port), lambda _: None)
    assert store.entries == {}


def test_a_supervisor_that_comes_back_to_a_node_which_has_another_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    own, other = MemoryCoordinator(store), MemoryCoordinator(store)
    monkeypatch.setattr(server, "open_coordinator", lambda _: own)
    said, over = list[str](), threading.Event()

    def take_its_place() -> None:
        wait_until(lambda: "n" in Nodes(other).alive())
        # It is frozen for long, another one comes, and then it goes on.
        store.end_session(own)
        Nodes(other).join(Node("n", "there", 7, "0"))
        own.watches.expired()
        if not over.wait(20):
            os.kill(os.getpid(), signal.SIGINT)

    taking = threading.Thread(target=take_its_place)
    taking.start()
    settings = ConsoleSettings(ConsoleHome(tmp_path), "memory:", node="n", master=False)
    try:
        with pytest.raises(NodeTaken, match="'n' is running already: process 7 on there"):
            server.serve(settings, said.append)
    except KeyboardInterrupt:
        pytest.fail("it went on beside the other one")
    finally:
        over.set()
        taking.join()
    assert said == ["this one was silent for too long, and ends; topologies go on"]
    assert Nodes(other).alive()["n"].process == 7


def test_a_master_whose_place_is_taken_ends_without_a_signal() -> None:
    over, asked = threading.Event(), uvicorn.Server(uvicorn.Config(FastAPI(), log_level="warning"))

    def take_its_place() -> None:
        wait_until(lambda: asked.started)
        over.set()

    taking = threading.Thread(target=take_its_place)
    taking.start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server._run_until(over, asked, listener)
    taking.join()
    assert asked.should_exit
