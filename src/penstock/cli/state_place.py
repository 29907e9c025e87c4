"""Where a command finds a topology's state: the options for it, and what they mean."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.screen import fail
from penstock.topology.model import Topology

if TYPE_CHECKING:
    from penstock.control.running import Running
    from penstock.runtime.state_folder import StateFolder

_PAUSE_SECONDS = 0.02

StateOption = Annotated[
    Path | None, typer.Option("--state", help="Where state is kept. By default .penstock/<topology> beside the file.")
]
CoordinatorOption = Annotated[
    str | None,
    typer.Option("--coordinator", metavar="URL", envvar="PENSTOCK_COORDINATOR", help="As for `penstock run`."),
]
OnlyOption = Annotated[
    str | None, typer.Option("--only", metavar="N,N…", help="Only these replicas: a node's own.", hidden=True)
]
Topologies = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A topology in YAML or Python, a DADSTORM .config, or a folder that holds one.",
        show_default=False,
    ),
]


def settled_state(topology: Topology, state: Path | None) -> StateFolder:
    """The topology's state folder, with nothing left half done by a command that was killed; a run is waited for."""
    from penstock.runtime.state_folder import StateFolder
    from penstock.runtime.swap import is_unsettled, settle

    folder = StateFolder.of(topology, state)
    while is_unsettled(folder):
        if folder.running() is None:
            with folder.held():
                settle(folder)
        else:
            time.sleep(_PAUSE_SECONDS)
    return folder


def replicas_meant(only: str | None) -> tuple[str, ...]:
    """The replicas of an `--only`; none: all."""
    return tuple(only.split(",")) if only else ()


def running_topology(topology: Topology, state: Path | None, coordinator: str | None) -> Running:
    """What runs of the topology; ends the command where nothing does."""
    from penstock.control.running import find_running
    from penstock.replication.replica import ReplicaPlace
    from penstock.runtime.state_folder import StateFolder

    running = find_running(topology, ReplicaPlace(StateFolder.of(topology, state)), coordinator)
    if not running.is_anything:
        fail(f"topology '{topology.name}' does not run", 1)
    return running
