"""Numbers and choices that cannot be: of the topology, and of single operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from penstock.topology.model import (
    MAX_EPOCH_TUPLES,
    MAX_SOURCES,
    Command,
    Count,
    Custom,
    Delivery,
    Location,
    Operator,
    Topology,
)
from penstock.topology.problems import Problem
from penstock.topology.values import LOGGING, ON_MALFORMED
from penstock.validation.suggestions import not_found

MAX_PARALLELISM = 4096
"""More instances than this is a slip of the finger: each costs a Spark task in every epoch."""

_OPERATOR_COMMANDS = ("Start", "Interval", "Crash", "Freeze", "Unfreeze")


def check_settings(topology: Topology) -> Iterator[Problem]:
    """Impossible values of the topology's and its operators' settings."""
    yield from _check_choice(topology.where, "delivery", topology.delivery, list(Delivery))
    yield from _check_choice(topology.where, "logging", topology.logging, LOGGING)
    for source in topology.sources:
        yield from _check_choice(source.where, f"source '{source.name}': on_malformed", source.on_malformed,
                                 ON_MALFORMED)
    epoch = topology.epoch
    if not _is_number(epoch.interval) or epoch.interval < 0:
        yield Problem(topology.where, f"epoch interval {epoch.interval} is impossible",
                      "give seconds, 0 for as soon as there is input")
    if not _is_whole(topology.epoch_tuples) or topology.epoch_tuples < 1:
        yield Problem(topology.where, f"epoch max_tuples {topology.epoch_tuples} is impossible", "give at least 1")
    elif topology.epoch_tuples > MAX_EPOCH_TUPLES:
        yield Problem(topology.where, f"epoch max_tuples {topology.epoch_tuples:,} is too many for one epoch",
                      f"give at most {MAX_EPOCH_TUPLES:,}")
    if not _is_number(epoch.tick) or epoch.tick < 0:
        yield Problem(topology.where, f"epoch tick {epoch.tick} is impossible", "give seconds, 0 for never")
    if not _is_number(topology.ack_timeout) or topology.ack_timeout <= 0:
        yield Problem(topology.where, f"ack_timeout {topology.ack_timeout} is impossible",
                      "give the seconds a tuple may wait for its ack, more than 0")
    if len(topology.sources) > MAX_SOURCES:
        yield Problem(topology.where, f"{len(topology.sources)} sources are too many", f"use at most {MAX_SOURCES}")
    for operator in topology.operators:
        yield from _check_operator(operator)
    for command in topology.commands:
        yield from _check_command(command, topology)


def _check_operator(operator: Operator) -> Iterator[Problem]:
    subject = f"operator '{operator.name}'"
    parallelism = operator.parallelism
    if parallelism is not None:
        if not _is_whole(parallelism) or parallelism < 1:
            yield Problem(operator.where, f"{subject}: parallelism {parallelism} is impossible",
                          "give at least 1")
        elif parallelism > MAX_PARALLELISM:
            yield Problem(operator.where, f"{subject}: parallelism {parallelism} is absurd",
                          f"give at most {MAX_PARALLELISM}")
    if isinstance(operator, Custom) and (not _is_number(operator.timeout) or operator.timeout <= 0):
        yield Problem(operator.where, f"{subject}: timeout {operator.timeout} is impossible",
                      "give the seconds one tuple may take, more than 0")
    if isinstance(operator, Count):
        yield from _check_choice(operator.where, f"{subject}: emit", operator.emit, ("changes", "each"))


def _check_choice(where: Location, subject: str, value: str, choices: Iterable[str]) -> Iterator[Problem]:
    choices = [str(choice) for choice in choices]
    if value not in choices:
        yield not_found(where, f"{subject} '{value}' is not known", str(value), choices, "use")


def _check_command(command: Command, topology: Topology) -> Iterator[Problem]:
    """Commands name operators; a replica's URL may stand in the place of the name."""
    verb = next((verb for verb in _OPERATOR_COMMANDS if verb.lower() == command.verb.lower()), None)
    if verb is None or (command.arguments and "://" in command.arguments[0]):
        return
    if not command.arguments:
        yield Problem(command.where, f"command '{command}' names no operator",
                      f"write {verb} and an operator")
        return
    names = [operator.name for operator in topology.operators]
    name = command.arguments[0]
    if name not in names:
        yield not_found(command.where, f"command '{command}': no operator '{name}'", name, names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
