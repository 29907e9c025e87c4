"""Puppet-master commands given to a topology of a console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from penstock.console.client import AnswerLost, Client
from penstock.console.tending import How
from penstock.errors import CommandRefused


class ConsoleTarget:
    """A topology of a console, by its name, until `close`.

    Commands are given in their order, and nobody waits here for what comes of them: only the next one waits until the
    console has answered. What was refused, or is not known to be done, is logged then, and counted in `failed`.
    """

    def __init__(self, console: Client, name: str, log: Callable[[str], None]) -> None:
        """Raises ConsoleError where the console has no such topology, or it does not run."""
        self._console = console
        self._name = name
        self._log = log
        seen = self._seen()
        if seen["how"] not in (How.RUNNING, How.STARTING):
            raise CommandRefused(f"topology '{name}' does not run: it is {seen['how']}")
        self._replicas = int(seen["wanted_replicas"])
        graph = seen["graph"]
        self.operators = None if graph is None else [
            node["name"] for node in graph["nodes"] if node["role"] not in ("source", "sink")]
        """Those of the topology; None where the console does not know them."""
        self._giving = ThreadPoolExecutor(1, thread_name_prefix="penstock-script")
        self.failed = 0

    def close(self) -> None:
        """Until all that was given is answered."""
        self._giving.shutdown()

    def hold(self, operators: Sequence[str]) -> None:
        for operator in operators:
            self._give("freeze", operator=operator)

    def start(self, operator: str) -> None:
        self._give("unfreeze", operator=operator)

    def interval(self, operator: str, seconds: float) -> None:
        self._give("interval", interval=f"{seconds:.3f}s", operator=operator)

    def status(self) -> Sequence[str]:
        seen = self._seen()
        lines = [f"replica {int(view['name']) - 1}: {view['phase']}, epoch {view['epoch']}"
                 for view in seen["replicas"]]  # fmt: skip
        return [f"{self._name}: {seen['safety'] or seen['how']}", *lines]

    def crash(self, operator: str, replica: str) -> None:
        self._give("crash", replica=self._checked(replica))

    def freeze(self, operator: str, replica: str) -> None:
        self._give("freeze", operator=operator, replica=self._checked(replica))

    def unfreeze(self, operator: str, replica: str) -> None:
        self._give("unfreeze", operator=operator, replica=self._checked(replica))

    def _seen(self) -> dict[str, Any]:
        seen: dict[str, Any] = self._console.get(f"/api/topologies/{self._name}")
        return seen

    def _give(self, verb: str, **arguments: str) -> None:
        def give() -> None:
            try:
                self._console.command(self._name, verb, **arguments)
            except Exception as error:
                # Whatever it is: nobody else would hear of it.
                self.failed += 1
                how = "perhaps done" if isinstance(error, AnswerLost) else "not done"
                self._log(f"% {how}: {' '.join((verb, *arguments.values()))}: {error}")

        self._giving.submit(give)

    def _checked(self, replica: str) -> str:
        if not 1 <= int(replica) <= self._replicas:
            raise CommandRefused(
                f"there is no replica {int(replica) - 1}: the topology has {self._replicas}, counted from 0")
        return replica
