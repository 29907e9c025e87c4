"""A console that runs topologies, and dies while they go on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from penstock.console.bundle import pack
from penstock.errors import ConsoleError

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS
from .readings import TICKS
from .running_console import Console, console

STREAM = TICKS.replace("topology: readings", "topology: stream") + "  ids: {from: ticks, file: out/ids.jsonl}\n"
BOUNDED = STREAM.replace("topology: stream", "topology: bounded").replace("rate: 50", "count: 100")
TAKEOVER_SECONDS = 5.0


def submit(at: Console, folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "topology.yaml").write_text(text)
    at.client.submit(pack(folder), "topology.yaml", (), False, False)


def test_topologies_outlive_the_console_which_finds_them_again(tmp_path: Path) -> None:
    with console(tmp_path) as running:
        submit(running, tmp_path / "stream", STREAM)
        submit(running, tmp_path / "bounded", BOUNDED)
        state = running.state("stream")
        wait_until(lambda: running.how("stream") == "running", PATIENCE_SECONDS)
        wait_until(lambda: running.how("bounded") == "ended", PATIENCE_SECONDS)
        process, before = state.running(), state.furthest().committed().epoch
        running.kill()
        # Nobody watches, and results go on.
        wait_until(lambda: state.furthest().committed().epoch > before + 5, PATIENCE_SECONDS)
        running.start()
        wait_until(lambda: running.how("stream") == "running")
        assert state.running() == process
        wait_until(lambda: running.client.get("/api/topologies/stream")["rates"].get("ticks", 0) > 10)
        assert 'penstock_up{topology="stream"} 1.0' in running.client.text("/metrics")
        wait_until(lambda: running.client.get("/api/console")["leading"])
        running.client.command("stream", "interval", interval="30s")
        running.client.command("stream", "stop")
        wait_until(lambda: running.how("stream") == "stopped", PATIENCE_SECONDS)
        rows = (running.work("stream") / "out/ids.jsonl").read_text().splitlines()
        ids = sorted(json.loads(row)["id"] for row in rows)
        assert ids == list(range(len(ids)))
        assert len(ids) > 50


def test_a_standby_takes_over_from_a_master_that_was_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = Console(home, command="master"), Console(home, command="master")
    first.start()
    second.start()
    try:
        submit(first, tmp_path / "stream", STREAM)
        wait_until(lambda: second.client.get("/api/topologies"))
        with pytest.raises(ConsoleError, match="give it to"):
            second.client.command("stream", "stop")
        first.kill()
        killed = time.monotonic()
        wait_until(lambda: second.client.get("/api/console")["leading"])
        assert time.monotonic() - killed <= TAKEOVER_SECONDS
        second.client.command("stream", "stop")
        assert [one["name"] for one in second.client.get("/api/topologies")] == ["stream"]
    finally:
        first.stop()
        second.stop()
