"""A console for tests: real HTTP on loopback, a coordinator in memory, and no node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from penstock.console.api import Access, create_app
from penstock.console.client import Client
from penstock.console.home import ConsoleHome
from penstock.console.master import Candidate, Master
from penstock.console.nodes import Node, Nodes
from penstock.console.service import Service
from penstock.console.tokens import Tokens
from penstock.coordination.base import Coordinator
from penstock.coordination.memory import MemoryCoordinator
from penstock.dashboard.page import add_page

from ...waiting import wait_until


@dataclass(frozen=True)
class RunningConsole:
    url: str
    coordinator: Coordinator
    master: Master
    home: ConsoleHome
    app: FastAPI

    @property
    def client(self) -> Client:
        return Client(self.url)

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.coordinator)

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.coordinator)

    def node(self, name: str = "a") -> None:
        self.nodes.join(Node(name, "here", 1, "0"))

    def see(self, topology: str, node: str = "a", **seen: Any) -> None:
        """Have a node tell something of a topology, and wait until the console has looked."""
        told: dict[str, Any] = {
            "how": "running", "why": "", "epoch": 1, "at": time.time(), "digest": "", "replicas": [], "safety": "",
            "progress": None, "busy": False, **seen,
        }  # fmt: skip
        self.nodes.tell(node, topology, told)

        def is_seen() -> bool:
            self.master.watching.look_unless_recent()
            watched = self.master.watching.get(topology)
            return watched is not None and watched.seen is not None and watched.seen["at"] == told["at"]

        wait_until(is_seen)


@contextmanager
def running_console(
    folder: Path, coordinator: Coordinator | None = None, name: str = "m", *, open_to_all: bool = True
) -> Iterator[RunningConsole]:
    coordinator = coordinator or MemoryCoordinator()
    home = ConsoleHome(folder)
    master = Master(coordinator, Candidate(name, f"http://{name}", "0", 1))
    access = Access(Tokens(coordinator), open_to_all, frozenset({"127.0.0.1", "localhost"}))
    app = create_app(Service(master, home, coordinator), access)
    add_page(app)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    master.start()
    thread.start()
    try:
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        wait_until(lambda: master.watching.reachable)
        yield RunningConsole(f"http://127.0.0.1:{port}", coordinator, master, home, app)
    finally:
        server.should_exit = True
        thread.join()
        master.stop()


def view(name: str, phase: str = "safe", **more: Any) -> dict[str, Any]:
    """One replica as a node sees it."""
    return {"name": name, "cell": "local", "phase": phase, "epoch": 5, "behind": 0, "first": 2, "why": "",
            "process": 100 + int(name), "host": "node-b", **more}  # fmt: skip
