"""The machines: each has a supervisor that signs in, tells what it sees, and is given things to do."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.coordination.base import Coordinator
from penstock.errors import ConsoleError, CoordinationError

_NODES = "console/nodes/"
_SEEN = "console/seen/"
_TASKS = "console/tasks/"
_BEGUN = "console/begun/"
_RESULTS = "console/results/"
RESULTS_KEPT_SECONDS = 3600.0
_NOBODY = "nobody"
"""Who has begun a task that was taken back."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Node:
    """A supervisor that is alive."""

    name: str
    host: str
    process: int
    version: str
    """Of Penstock: all nodes of a console have the same."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells two starts apart."""


@dataclass(frozen=True)
class Task:
    """Something that one node is to do, once."""

    id: str
    node: str
    verb: str
    topology: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """How a task went."""

    id: str
    done: bool
    said: str
    time: float


class NodeTaken(CoordinationError):
    """Another supervisor has this name."""


class Nodes:
    """All nodes of a console."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    # -- who is there ---------------------------------------------------------------------------

    def join(self, node: Node) -> None:
        """Sign in, for as long as this process gives signs of life; raises NodeTaken, or ConsoleError for its name.

        A node's name is a folder in its home, and a part of keys in the coordinator.
        """
        if not _NAME.fullmatch(node.name):
            raise ConsoleError(
                f"a node cannot be called '{node.name[:100]}': give it a --name of at most 100 letters, digits, `.`, "
                "`_` and `-` that begins with none of `.` and `-`"
            )
        text = json.dumps(asdict(node))
        found = self._coordinator.create_ephemeral(_NODES + node.name, text)
        if found != text:
            other = Node(**json.loads(found))
            raise NodeTaken(
                f"a supervisor of the node '{node.name}' is running already: process {other.process} on {other.host}; "
                "stop it first, or give this one another --name"
            )

    def alive(self) -> dict[str, Node]:
        return {name: Node(**fields) for name, fields in self._entries(_NODES).items()}

    # -- what they see --------------------------------------------------------------------------

    def tell(self, node: str, topology: str, seen: Mapping[str, Any]) -> None:
        """What a node sees of a topology now."""
        self._coordinator.put(f"{_SEEN}{topology}/{node}", json.dumps(seen))

    def told(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By topology and node, what each last saw."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for key, seen in self._entries(_SEEN).items():
            topology, _, node = key.partition("/")
            found.setdefault(topology, {})[node] = seen
        return found

    def forget(self, topology: str) -> None:
        for key in self._coordinator.list(f"{_SEEN}{topology}/"):
            self._coordinator.delete(key)

    # -- what they are to do --------------------------------------------------------------------

    def give(self, task: Task) -> None:
        """Hand a task over; the same one twice is one."""
        self._coordinator.create_if_absent(f"{_TASKS}{task.node}/{task.id}", json.dumps(asdict(task)))

    def tasks_of(self, node: str) -> str:
        """Under what the tasks of a node stand, for who watches."""
        return f"{_TASKS}{node}/"

    def tasks(self, node: str) -> list[Task]:
        """What a node has still to do, the oldest first."""
        return [Task(**fields) for _, fields in sorted(self._entries(self.tasks_of(node)).items())]

    def withdraw(self, node: str, task: str) -> None:
        """Nobody waits for it any more: where it was not begun, it is not."""
        self._coordinator.delete(f"{_TASKS}{node}/{task}")

    def is_withdrawn(self, task: Task) -> bool:
        """Whether nobody waits any more for a task that was begun."""
        return self._coordinator.get(f"{_TASKS}{task.node}/{task.id}") is None

    def drop(self, task: Task) -> None:
        """It was begun, and is not done: nobody wants to know what came of it."""
        self._coordinator.delete(_BEGUN + task.id)

    def take_back(self, task: Task, said: str) -> Result | None:
        """Have no node begin it any more, and what is `said` of that; or what came of it; None where one is at it."""
        if not self.begin(task, _NOBODY):
            return self.result(task.id)
        # What was finished just now is not begun any more, either.
        found = self.result(task.id)
        self.withdraw(task.node, task.id)
        return found or Result(task.id, False, said, time.time())

    def is_taken_back(self, task: Task) -> bool:
        return self._coordinator.get(_BEGUN + task.id) == _NOBODY

    def begin(self, task: Task, run: str) -> bool:
        """Whether this start of the supervisor is the one that does it: whatever was begun is not begun again."""
        return self._coordinator.create_if_absent(_BEGUN + task.id, run) == run

    def finish(self, task: Task, done: bool, said: str) -> None:
        result = Result(task.id, done, said, time.time())
        self._coordinator.put(_RESULTS + task.id, json.dumps(asdict(result)))
        self._coordinator.delete(f"{_TASKS}{task.node}/{task.id}")
        self._coordinator.delete(_BEGUN + task.id)

    def result(self, task: str) -> Result | None:
        text = self._coordinator.get(_RESULTS + task)
        return None if text is None else Result(**json.loads(text))

    def forget_result(self, task: str) -> None:
        """It was read, and nobody asks for it again."""
        self._coordinator.delete(_RESULTS + task)

    def forget_old_results(self) -> None:
        for name, fields in self._entries(_RESULTS).items():
            if fields["time"] < time.time() - RESULTS_KEPT_SECONDS:
                self._coordinator.delete(_RESULTS + name)
        for key, run in self._coordinator.entries(_BEGUN).items():
            task = key.removeprefix(_BEGUN)
            if run == _NOBODY and float(task.partition("-")[0]) < time.time() - RESULTS_KEPT_SECONDS:
                self._coordinator.delete(key)

    def _entries(self, prefix: str) -> dict[str, Any]:
        found = self._coordinator.entries(prefix)
        return {key.removeprefix(prefix): json.loads(text) for key, text in found.items()}
