"""A console as a user starts it, with the topologies that it runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.console.client import Client
from penstock.console.home import ConsoleHome
from penstock.errors import ConsoleError
from penstock.replication.replica import opened_roster
from penstock.runtime.state_folder import StateFolder, is_alive

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK

NODE = "n1"


class Console:
    """`penstock up`, or only a master, on a port of its own."""

    def __init__(self, home: Path, *arguments: str, command: str = "up") -> None:
        self.home = home
        self.port = _free_port()
        self._command = [PENSTOCK, command, "--port", str(self.port), "--home", str(home), *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Client:
        return Client(self.url)

    def start(self) -> Console:
        with (self.home.parent / f"console-{self.port}.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, alive=lambda: self._process is not None and self._process.poll() is None)
        return self

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE_SECONDS)

    def state(self, topology: str) -> StateFolder:
        return ConsoleHome(self.home).topology(topology, NODE).state

    def work(self, topology: str) -> Path:
        return ConsoleHome(self.home).topology(topology, NODE).work

    def how(self, topology: str) -> str:
        return str(self.client.get(f"/api/topologies/{topology}")["how"])

    def _answers(self) -> bool:
        with suppress(ConsoleError):
            return bool(self.client.get("/api/console")["leader"])
        return False


@contextmanager
def console(folder: Path) -> Iterator[Console]:
    """A console with a node; at the end nothing of it is left."""
    made = Console(folder / "home", "--name", NODE)
    try:
        yield made.start()
    finally:
        made.stop()
        for place in (folder / "home" / "nodes" / NODE).glob("*"):
            _kill_all(StateFolder(place / "state"))


def _kill_all(state: StateFolder) -> None:
    processes = [state.running()]
    if (state.path / "coordinator.sqlite").exists():
        with opened_roster(state.coordinator) as roster:
            processes += [member.process for member in roster.members().values()]
    for process in processes:
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
            wait_until(lambda process=process: not is_alive(process))  # type: ignore[misc]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
