"""`penstock status`: whether a topology runs, how far it is, and how safe."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, client, meant_as_name
from penstock.cli.loading import File, Sets, load
from penstock.cli.orders import opened_coordinator, opened_orders
from penstock.cli.screen import out
from penstock.cli.state_place import CoordinatorOption, StateOption
from penstock.topology.model import Topology

if TYPE_CHECKING:
    from penstock.replication.views import ReplicaView
    from penstock.runtime.state_folder import StateFolder


def status(
    file: File = None,
    sets: Sets = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Show whether a topology runs, how far it is, and how its replicas are.

    With `replicas: 2`, `2/2 safe` means that either may fail now and nobody notices. In place of a file, the name of a
    topology of a console.
    """
    if (name := at_console(file)) is not None:
        _status_at_console(name, at, token, authority, as_json)
        return
    topology = load(file, sets, quiet=True)
    from penstock.replication.replica import ReplicaPlace, opened_roster
    from penstock.replication.views import safety_of, views_of, with_frozen_operators
    from penstock.runtime.state_folder import StateFolder

    place = ReplicaPlace(StateFolder.of(topology, state))
    views: list[ReplicaView] = []
    divergence = None
    if topology.replicas > 1 and (coordinator is not None or place.home.path.is_dir()):
        with opened_roster(place.coordinator(topology, coordinator)) as roster:
            views, divergence = views_of(roster.members(), roster.told(), topology.replica_names), roster.divergence()
        if any(view.phase == "frozen" for view in views):
            with opened_orders(topology, state, coordinator) as orders:
                views = with_frozen_operators(views, orders)
    reached = max([place.home.committed().epoch, *(view.epoch for view in views)])
    how = safety_of(views) if views else _how(topology, place.home, state, coordinator)
    if as_json:
        typer.echo(json.dumps({"topology": topology.name, "status": how, "epoch": reached,
                               "divergence": "" if divergence is None else str(divergence),
                               "replicas": [asdict(view) for view in views]}))  # fmt: skip
        return
    typer.echo(f"{topology.name}: {how}" + (f", epoch {reached}" if reached else ""))
    if divergence is not None:
        typer.echo(divergence)
    if views:
        out.print(replica_table(views))


def _status_at_console(name: str, at: str | None, token: str | None, authority: Path | None, as_json: bool) -> None:
    from penstock.replication.lifecycle import Phase
    from penstock.replication.views import ReplicaView

    with meant_as_name(name):
        found = client(at, token, authority).get(f"/api/topologies/{name}")
    views = [ReplicaView(**{**view, "phase": Phase(view["phase"])}) for view in found["replicas"]]
    how = ", ".join(word for word in (found["how"], found["safety"]) if word)
    if as_json:
        typer.echo(json.dumps({"topology": name, "status": how, "epoch": found["epoch"],
                               "divergence": found["divergence"],
                               "replicas": [asdict(view) for view in views]}))  # fmt: skip
        return
    typer.echo(f"{name}: {how}" + (f", epoch {found['epoch']}" if found["epoch"] else ""))
    for words in (found["why"], found["divergence"]):
        if words:
            typer.echo(words)
    if views:
        out.print(replica_table(views))


def _how(topology: Topology, home: StateFolder, state: Path | None, coordinator: str | None) -> str:
    process = home.running()
    if process is not None:
        return f"running, process {process}{_frozen(topology, home, state, coordinator)}"
    committed = home.committed()
    if not committed.epoch:
        return "has not run yet"
    return "ended" if committed.ended else "stopped; `penstock run` goes on"


def _frozen(topology: Topology, home: StateFolder, state: Path | None, coordinator: str | None) -> str:
    """Of a run without replicas, that it is frozen, and how much it has received since; empty where it is not."""
    from penstock.epochs.log import EpochLog
    from penstock.epochs.orders import FIRST, Orders
    from penstock.errors import CoordinationError
    from penstock.replication.views import why_frozen
    from penstock.runtime.gate import epochs_to_do

    # It runs all the same: what is known is told.
    with suppress(CoordinationError), opened_coordinator(topology, state, coordinator) as opened:
        operators = Orders(opened).frozen(FIRST)
        newest = EpochLog(opened).newest() if operators else None
        waiting = 0 if newest is None else max(newest.epoch - home.committed().epoch, 0)
        return f", {why_frozen(operators) or 'frozen'}{epochs_to_do(waiting)}" if operators else ""
    return ""


def replica_table(views: list[ReplicaView]) -> Table:
    """Side by side: who is safe, who commits, who lags."""
    from penstock.replication.lifecycle import Phase

    colours = {Phase.SAFE: "green", Phase.PARKED: "red", Phase.DOWN: "red"}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("replica", "cell", "", "epoch", "behind", "first"):
        table.add_column(name, justify="right" if name in ("epoch", "behind", "first") else "left")
    table.add_column("")
    for view in views:
        table.add_row(view.name, view.cell, Text(view.phase, style=colours.get(view.phase, "yellow")),
                      f"{view.epoch:,}", f"{view.behind:,}", f"{view.first:,}", Text(view.why, style="dim"))
    return table
