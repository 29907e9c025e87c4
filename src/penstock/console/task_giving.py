"""Have the nodes of a topology do something, and wait for what they say."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from penstock.console.commands import Verb
from penstock.console.desired import Wanted
from penstock.console.nodes import Nodes, Result, Task
from penstock.errors import CommandRefused

ANSWER_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_PENDING = "it is being done; look at its events"


class TaskGiving:
    """The tasks of one master."""

    def __init__(self, nodes: Nodes, is_busy: Callable[[str], bool]) -> None:
        """`is_busy` says of a topology whether something is being done to it already."""
        self._nodes = nodes
        self._is_busy = is_busy

    def give(self, wanted: Wanted, verb: str, words: Sequence[str], node: str | None = None) -> dict[str, Any]:
        """Have a node of the topology do it, and wait for its answer for a while."""
        alive = self._nodes.alive()
        homes = sorted(homes_of(wanted), key=lambda home: home not in alive)
        task = self._task(wanted, verb, words, node or homes[0])
        self._nodes.give(task)
        result = self._result(task, time.monotonic() + ANSWER_SECONDS)
        if result is None:
            return {"done": False, "said": _PENDING, "task": task.id, "node": task.node}
        if not result.done:
            raise CommandRefused(result.said)
        return {"done": True, "said": result.said, "task": task.id}

    def give_everywhere(self, wanted: Wanted, verb: Verb, words: Sequence[str]) -> dict[str, Any]:
        """Each node does it to its own replicas; where it is one after the other, they see to that among themselves.

        A node that is away is killed already, and hinders everything else.
        """
        alive = self._nodes.alive()
        homes = homes_of(wanted)
        said = {home: "it is away" for home in homes if verb is Verb.KILL and home not in alive}
        tasks = [self._task(wanted, verb, words, home) for home in homes if home not in said]
        for task in tasks:
            self._nodes.give(task)
        deadline = time.monotonic() + ANSWER_SECONDS
        results = {task.node: self._result(task, deadline) for task in tasks}
        said |= {home: _PENDING if result is None else result.said for home, result in results.items()}
        lines = "\n".join(f"node {home}: {said[home]}" for home in homes)
        if any(result is not None and not result.done for result in results.values()):
            raise CommandRefused(lines)
        return {"done": None not in results.values(), "said": lines}

    def read(self, name: str, answer: dict[str, Any]) -> str:
        """What a node has said to a question, which is not kept; raises CommandRefused when it has not."""
        if not answer["done"]:
            self._nodes.withdraw(answer["node"], answer["task"])
            raise CommandRefused(f"'{name}' has not answered within {ANSWER_SECONDS:.0f} s: try again")
        self._nodes.forget_result(answer["task"])
        return str(answer["said"])

    def _task(self, wanted: Wanted, verb: str, words: Sequence[str], home: str) -> Task:
        """What a node is to do; raises CommandRefused where it is away."""
        if home not in self._nodes.alive():
            raise away_from(wanted, home)
        return Task(f"{time.time():017.6f}-{uuid.uuid4().hex[:8]}", home, verb, wanted.name, {"words": list(words)})

    def _result(self, task: Task, deadline: float) -> Result | None:
        """What a node says to a task; None where it is still at it when the time is over.

        A task that no node has begun by then is taken back: it would be done whenever the node is there again.
        """
        while (result := self._nodes.result(task.id)) is None and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        if result is not None:
            return result
        if self._is_busy(task.topology):
            said = (f"something else is being done to '{task.topology}' on node {task.node}, and nothing was done: try "
                    "again when that is over")  # fmt: skip
        else:
            said = (f"node {task.node} does not answer, and nothing was done: see whether its supervisor runs, and try "
                    "again")  # fmt: skip
        return self._nodes.take_back(task, said)


def homes_of(wanted: Wanted) -> list[str]:
    """The nodes of a topology; raises CommandRefused where it has none."""
    if not wanted.nodes:
        raise CommandRefused(f"'{wanted.name}' has no node yet: start one with `penstock supervisor --join …`")
    return sorted(set(wanted.nodes.values()))


def away_from(wanted: Wanted, home: str) -> CommandRefused:
    return CommandRefused(f"the node '{home}' of '{wanted.name}' is away: nobody there can do it now")
