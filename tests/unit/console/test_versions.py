"""All of a console has one version, and may have another when all of it was stopped."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from penstock.console import server
from penstock.console.home import ConsoleHome
from penstock.console.server import ConsoleSettings
from penstock.console.versions import OtherVersion, Part, sign_in
from penstock.coordination.memory import MemoryCoordinator, MemoryStore

from ...waiting import wait_until

OLD, NEW = Part("a", 1, "1.0"), Part("b", 2, "2.0")


def come(store: MemoryStore, part: Part, turned_away: list[OtherVersion] | None = None) -> MemoryCoordinator:
    coordinator = MemoryCoordinator(store)
    sign_in(coordinator, part, ([] if turned_away is None else turned_away).append)
    return coordinator


def test_another_version_is_refused_while_one_lives_and_comes_when_all_have_gone() -> None:
    store = MemoryStore()
    one, other = come(store, OLD), come(store, Part("b", 3, "1.0"))
    one.close()
    with pytest.raises(OtherVersion, match=r"this is 2\.0, and process 3 on b is 1\.0: install the same version"):
        come(store, NEW)
    # Who was refused has left nothing behind.
    same = come(store, OLD)
    for each in (other, same):
        each.close()
    come(store, NEW)
    with pytest.raises(OtherVersion, match=r"this is 1\.0, and process 2 on b is 2\.0"):
        come(store, OLD)


def test_who_was_away_while_the_console_was_exchanged_is_turned_away() -> None:
    store, turned_away = MemoryStore(), list[OtherVersion]()
    old = come(store, OLD, turned_away)
    store.expire(old)
    wait_until(lambda: len(old.list("console/parts/")) == 1)
    assert turned_away == []
    store.end_session(old)
    new = come(store, NEW)
    store.expire(old)
    wait_until(lambda: turned_away)
    assert len(new.list("console/parts/")) == 1


@pytest.mark.parametrize("settings", [{"supervisor": False}, {"master": False}], ids=["master", "supervisor"])
def test_neither_a_master_nor_a_supervisor_comes_to_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, bool]
) -> None:
    store = MemoryStore()
    monkeypatch.setattr(server, "open_coordinator", lambda _: MemoryCoordinator(store))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    come(store, OLD)
    threads = threading.active_count()
    with pytest.raises(OtherVersion, match=r"process 1 on a is 1\.0"):
        server.serve(ConsoleSettings(ConsoleHome(tmp_path), "memory:", port=port, **settings), lambda _: None)
    # Nothing was begun.
    assert threading.active_count() <= threads
    assert MemoryCoordinator(store).list("console/nodes/") == []
