"""A console as a user starts it, with the topologies that it runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from penstock.console.client import Client
from penstock.console.home import ConsoleHome
from penstock.errors import ConsoleError
from penstock.runtime.state_folder import StateFolder, is_alive

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK

NODE = "n1"


class _Process:
    """A part of a console, as a process."""

    def __init__(self, home: Path, log: str, *command: str) -> None:
        self.home = home
        self._log = home.parent / f"{log}.log"
        self._command = [PENSTOCK, *command, "--home", str(home)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        self.home.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE_SECONDS)


class Supervisor(_Process):
    """`penstock supervisor` of a console on this machine."""

    def __init__(self, home: Path, name: str = NODE, *arguments: str) -> None:
        self.name = name
        super().__init__(home, f"supervisor-{name}", "supervisor", "--name", name, *arguments)

    def state(self, topology: str) -> StateFolder:
        return ConsoleHome(self.home).topology(topology, self.name).state

    def fall(self, topology: str) -> None:
        """As when the machine loses its power: everything on it is gone at once."""
        self.kill()
        _kill_all(self.state(topology))


class Console(_Process):
    """`penstock up`, or only a master, on a port of its own."""

    def __init__(self, home: Path, *arguments: str, command: str = "up", authority: Path | None = None,
                 token: str = "", name: str = "127.0.0.1") -> None:  # fmt: skip
        """`name` is what its certificate is for, and `token` what it is asked with."""
        self.port = _free_port()
        self._authority = authority
        self._token = token
        self._name = name
        super().__init__(home, f"console-{self.port}", command, "--port", str(self.port), *arguments)

    @property
    def url(self) -> str:
        return f"http{'s' if self._authority else ''}://{self._name}:{self.port}"

    @property
    def client(self) -> Client:
        return Client(self.url, self._token, self._authority)

    def start(self) -> Self:
        super().start()
        wait_until(self._answers, alive=self.is_alive)
        return self

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
def master_alone(folder: Path) -> Iterator[Console]:
    """A master without a node."""
    master = Console(folder / "home", command="master").start()
    try:
        yield master
    finally:
        master.stop()


@contextmanager
def console(folder: Path) -> Iterator[Console]:
    """A console with a node; at the end nothing of it is left."""
    made = Console(folder / "home", "--name", NODE)
    try:
        yield made.start()
    finally:
        made.stop()
        kill_topologies(folder / "home")


def kill_topologies(home: Path) -> None:
    """What a console's nodes run, which outlives the console."""
    for place in (home / "nodes").glob("*/*"):
        _kill_all(StateFolder(place / "state"))


def _kill_all(state: StateFolder) -> None:
    """Who watches a topology, and the replicas whose state is here."""
    for process in [each.running() for each in (state, *state.replicas().values())]:
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
            wait_until(lambda process=process: not is_alive(process))  # type: ignore[misc]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
