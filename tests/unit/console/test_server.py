"""On an address that other machines reach, nobody comes in without a token."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.console import server
from penstock.console.home import ConsoleHome
from penstock.console.server import ConsoleSettings, _access
from penstock.console.tokens import Role, Tokens
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import ConsoleError


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


def test_without_tokens_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(server, "open_coordinator", lambda _: MemoryCoordinator(store))
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ConsoleError, match="tokens are needed"):
        server.serve(ConsoleSettings(ConsoleHome(tmp_path), "memory:", host="0.0.0.0", port=port), lambda _: None)
    assert store.entries == {}
