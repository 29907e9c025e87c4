"""A node that runs nothing and tells a console whatever a test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.console.home import ConsoleHome
from penstock.console.nodes import Node, Nodes, Task
from penstock.coordination.opening import open_coordinator

from .running_console import NODE

_LOOK_SECONDS = 0.05
_REPEAT_SECONDS = 1.0
"""As a real one does: who says nothing for some seconds is away."""


class MadeUpNode:
    """Answers every task with what `answers` has for its verb, and keeps what it was told to do."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.says: dict[str, str] = {}
        """By verb, what it answers where that is words."""
        self.slow: set[str] = set()
        """Verbs that it does not do as long as they are here."""
        self.done: list[Task] = []
        self._telling = threading.Lock()
        self._told: dict[str, dict[str, Any]] = {}
        self._told_at = 0.0

    def tell(self, topology: str, epoch: int, **more: Any) -> None:
        seen = {"how": "running", "why": "", "epoch": epoch, "at": time.time(), "digest": "", "replicas": [],
                "safety": "", "progress": None, "busy": False, **more}  # fmt: skip
        with self._telling:
            self._told[topology] = seen
            self._nodes.tell(NODE, topology, seen)

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """What it was told to do, but for what only looks."""
        return [(task.verb, task.arguments["words"]) for task in self.done if "--json" not in task.arguments["words"]]

    def _tell_again(self) -> None:
        if time.monotonic() - self._told_at < _REPEAT_SECONDS:
            return
        with self._telling:
            for topology, seen in self._told.items():
                # Figures that stay the same would be a rate of nothing.
                if seen["progress"] is None:
                    self._nodes.tell(NODE, topology, {**seen, "at": time.time()})
        self._told_at = time.monotonic()

    def work_until(self, over: threading.Event) -> None:
        while not over.wait(_LOOK_SECONDS):
            self._tell_again()
            for task in self._nodes.tasks(NODE):
                if task.verb in self.slow:
                    continue
                self.done.append(task)
                lines = [json.dumps(row) for row in self.answers.get(task.verb, ())]
                self._nodes.finish(task, True, self.says.get(task.verb, "\n".join(lines)))


@contextmanager
def made_up_node(home: Path) -> Iterator[MadeUpNode]:
    coordinator = open_coordinator(ConsoleHome(home).coordinator)
    nodes, over = Nodes(coordinator), threading.Event()
    nodes.join(Node(NODE, "made-up", 1, "0"))
    node = MadeUpNode(nodes)
    working = threading.Thread(target=node.work_until, args=(over,))
    working.start()
    try:
        yield node
    finally:
        over.set()
        working.join()
        coordinator.close()


def replica(name: str, phase: str = "safe", **more: Any) -> dict[str, Any]:
    return {"name": name, "cell": "local", "phase": phase, "epoch": 5, "behind": 0, "first": 2, "why": "",
            "process": 100 + int(name), "host": "node-b", **more}  # fmt: skip


def progress(epoch: int, tuples: Mapping[str, int | None], delivered: Mapping[str, int], **more: Any) -> dict[str, Any]:
    return {"epoch": epoch, "lag": 0, "seconds": 1.0, "epoch_ms": 50.0, "age_ms": 550.0, "at_work": 0.1,
            "tuples": tuples, "delivered": delivered, "malformed": {}, "failed": {}, "retried": 0, "lost": 0, "late": 0,
            "waiting": None, **more}  # fmt: skip
