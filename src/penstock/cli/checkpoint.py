"""`penstock checkpoint`: keep the state of a topology as it is after an epoch, under a name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.busy import megabytes
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, client, give, meant_as_name
from penstock.cli.loading import File, Sets, load
from penstock.cli.screen import fail, show_listing
from penstock.cli.state_place import CoordinatorOption, StateOption, settled_state

if TYPE_CHECKING:
    from penstock.runtime.manifest import Manifest
    from penstock.runtime.state_folder import StateFolder


def checkpoint(
    file: File = None,
    sets: Sets = None,
    name: Annotated[str | None, typer.Option(help="What to call it. By default after its epoch.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the checkpoints there are.")] = False,
    delete: Annotated[str | None, typer.Option(metavar="NAME", help="Remove a checkpoint.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    nodes: Annotated[
        Path | None,
        typer.Option(hidden=True, help="With --list and --delete: those of all nodes, which keep what they have here."),
    ] = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Keep what a topology remembers after its newest epoch, under a name.

    Works on a running topology, which does not notice, and on a stopped one. It costs no copying on one disk: what
    Spark writes is never changed, so the files are linked. `penstock backup` copies a checkpoint elsewhere, and
    `penstock restore` goes on from it.
    """
    if (known := at_console(file)) is not None:
        _at_console(known, name, listing, delete, as_json, at, token, authority)
        return
    topology = load(file, sets, quiet=True)
    from penstock.runtime.snapshots import delete_snapshot, list_snapshots, take_snapshot

    folder = settled_state(topology, state)
    if delete is not None:
        delete_snapshot(_holder(topology.name, folder, nodes, delete), delete)
        typer.echo(f"checkpoint '{delete}' is removed")
    elif listing:
        found = [{**summary(each), **of} for state, of in _places(topology.name, folder, nodes)
                 for each in list_snapshots(state)]  # fmt: skip
        _show(topology.name, found, as_json)
    else:
        taken = take_snapshot(folder, topology.name, folder.coordinator_for(topology, coordinator), name)
        if as_json:
            typer.echo(json.dumps(summary(taken)))
        else:
            typer.echo(f"checkpoint '{taken.name}' after epoch {taken.epoch}, {megabytes(taken.size)}, is in "
                       f"{folder.snapshots / taken.name}")


def _places(topology: str, own: StateFolder, nodes: Path | None) -> list[tuple[StateFolder, dict[str, str]]]:
    """Where checkpoints of a topology are, and what else to say of those."""
    from penstock.runtime.state_folder import StateFolder

    if nodes is None:
        return [(own, {})]
    return [(StateFolder(path), {"node": path.parents[1].name}) for path in sorted(nodes.glob(f"*/{topology}/state"))]


def _holder(topology: str, own: StateFolder, nodes: Path | None, name: str) -> StateFolder:
    """Among whose files a checkpoint is; the own ones where it is nowhere, which say so."""
    there = [(state, of) for state, of in _places(topology, own, nodes) if (state.snapshots / name).is_dir()]
    if len(there) > 1:
        nodes_of = " and ".join(of["node"] for _, of in there)
        fail(f"nodes {nodes_of} each have a checkpoint '{name}': remove one, with that node's --state", 1)
    return there[0][0] if there else own


def _at_console(topology: str, name: str | None, listing: bool, delete: str | None, as_json: bool, at: str | None,
                token: str | None, authority: Path | None) -> None:  # fmt: skip
    if delete is not None or not listing:
        give(topology, "checkpoint", at, token, authority, as_json=as_json, name=name, delete=delete)
        return
    with meant_as_name(topology):
        _show(topology, client(at, token, authority).get(f"/api/topologies/{topology}/checkpoints"), as_json)


def _show(topology: str, found: list[dict[str, Any]], as_json: bool) -> None:
    show_listing(
        found, as_json, title=f"checkpoints of {topology}",
        columns={"name": "left", "epoch": "right", "taken": "left", "instances": "right", "size": "right"},
        rows=([each["name"], str(each["epoch"]), each["taken"], str(each["instances"]), megabytes(each["bytes"])]
              for each in found),
        nothing=f"topology '{topology}' has no checkpoints: `penstock checkpoint` takes one")


def summary(manifest: Manifest) -> dict[str, Any]:
    """What there is to say of a snapshot, for programs."""
    return {
        "name": manifest.name,
        "topology": manifest.topology,
        "epoch": manifest.epoch,
        "taken": manifest.taken,
        "instances": manifest.instances,
        "operators": sorted(set(manifest.state_ids)),
        "bytes": manifest.size,
    }
