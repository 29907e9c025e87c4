"""What the commands share that tell a running topology what is wanted of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.screen import fail
from penstock.topology.model import Topology
from penstock.topology.problems import suggest

if TYPE_CHECKING:
    from penstock.coordination.base import Coordinator
    from penstock.epochs.orders import Orders

Replica = Annotated[str | None, typer.Option(metavar="N", help="Which replica; without it, all.")]


@contextmanager
def opened_orders(topology: Topology, state: Path | None, coordinator: str | None) -> Iterator[Orders]:
    """The orders for a topology that has run, or runs."""
    from penstock.epochs.orders import Orders

    with opened_coordinator(topology, state, coordinator) as opened:
        yield Orders(opened)


@contextmanager
def opened_coordinator(topology: Topology, state: Path | None, coordinator: str | None) -> Iterator[Coordinator]:
    """The coordinator of a topology that has run, or runs."""
    from penstock.coordination.opening import open_coordinator
    from penstock.runtime.state_folder import StateFolder

    home = StateFolder.of(topology, state)
    if coordinator is None and not home.path.is_dir():
        fail(f"topology '{topology.name}' has not run yet: nothing in {home.path}", 1)
    opened = open_coordinator(home.coordinator_for(topology, coordinator))
    try:
        yield opened
    finally:
        opened.close()


def named_replicas(topology: Topology, wanted: str | None) -> list[str]:
    """The replicas that a command is for."""
    names = topology.replica_names
    if wanted is None:
        return names
    if topology.replicas < 2 and wanted not in names:
        fail(f"topology '{topology.name}' has no replicas: leave out --replica", 2)
    if wanted not in names:
        fail(f"topology '{topology.name}' has no replica '{wanted}': there are {', '.join(names)}", 2)
    return [wanted]


def check_operator(topology: Topology, operator: str | None) -> None:
    """End the command for an operator that the topology does not have."""
    names = [each.name for each in topology.operators]
    if operator is not None and operator not in names:
        hint = suggest(operator, names) or f"there are {', '.join(names) or 'none'}"
        fail(f"topology '{topology.name}' has no operator '{operator}': {hint}", 2)
