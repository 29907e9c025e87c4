"""DADSTORM commands checked against the operators they speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.topology.dadstorm.operators import Declaration, find_id
from penstock.topology.model import Command
from penstock.topology.problems import Problem, suggest


class Replicas:
    """Which replicas there are, and under which URL."""

    def __init__(self, operators: Iterable[Declaration], names: Mapping[str, str]) -> None:
        """`names` are the nodes of all ids, also of those whose description is too wrong to be declared."""
        self.names = names
        self.counts: dict[str, int] = {}
        self._by_url: dict[str, tuple[str, str]] = {}
        for one in operators:
            self.counts[one.id] = one.rep_fact
            for number, url in enumerate(one.addresses):
                self._by_url.setdefault(url, (names[one.id], str(number)))

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(self._by_url)

    def at(self, url: str) -> tuple[str, str] | None:
        """The operator's node and the number of the replica at `url`."""
        return self._by_url.get(url)


def resolve_all(commands: Iterable[Command], replicas: Replicas) -> tuple[tuple[Command, ...], list[Problem]]:
    """The commands as `resolve_command` gives them, but for those that are wrong, and what is wrong with these."""
    resolved = [resolve_command(command, replicas) for command in commands]
    return (tuple(outcome for outcome in resolved if isinstance(outcome, Command)),
            [outcome for outcome in resolved if isinstance(outcome, Problem)])


def resolve_command(command: Command, replicas: Replicas) -> Command | Problem:
    """The command with its operator's node name, and operator and number in place of a URL."""
    if not command.arguments or command.verb == "Wait":
        return command
    first, *rest = command.arguments
    if "://" in first:
        found = replicas.at(first)
        if found is None:
            known = suggest(first, replicas.urls) or "write OPERATOR REPLICA"
            return Problem(command.where, f"{command}: no replica has this address",
                           known if replicas.urls else f"addresses are known only with a DADSTORM file: {known}")
        return replace(command, arguments=found)
    operator = find_id(first, replicas.names)
    if operator is None:
        return Problem(command.where, f"{command}: there is no operator '{first}'",
                       f"{suggest(first, replicas.names)} there are: {', '.join(replicas.names) or 'none'}".lstrip())
    count = replicas.counts.get(operator)
    if rest and command.verb != "Interval" and count is not None and int(rest[0]) >= count:
        allowed = f"use 0 to {count - 1}" if count > 1 else "its only replica is 0"
        return Problem(command.where, f"{command}: {operator} has no replica {rest[0]}",
                       f"replicas count from 0: {allowed}")
    return replace(command, arguments=(replicas.names[operator], *rest))
