"""`penstock restore`: go on from a backup."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.busy import busy
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import File, Sets, load
from penstock.cli.run import run as run_command
from penstock.cli.screen import err
from penstock.cli.state_place import CoordinatorOption, StateOption, settled_state


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A backup, or the folder of a checkpoint.",
                                           show_default=False)],
    file: File = None,
    sets: Sets = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Another name for the topology, to run it beside the first. The "
                     "same as `--set topology=NAME`."),
    ] = None,
    parallelism: Annotated[
        int | None,
        typer.Option(min=1, help="How many instances stateful operators have from now on. By default as many as in the "
                     "backup, or what the file's `parallelism` says if that has changed since."),
    ] = None,
    replacing: Annotated[
        bool, typer.Option("--replace", help="Give up an interrupted run in the same place.")
    ] = False,
    fresh_sinks: Annotated[
        bool, typer.Option("--fresh-sinks", help="Remove the sinks' output; it begins after the backup's epoch.")
    ] = False,
    start: Annotated[bool, typer.Option("--run", help="Run it at once, as `penstock run` does.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as a JSON object.")] = False,
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "1g",
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Make a topology go on from a backup: `penstock run` then starts from there.

    For a topology of a console: `penstock restore CHECKPOINT NAME`. It is stopped for it, and started again.

    The topology may have changed since: state is matched to operators by name. What is left behind, and what begins
    empty, is said before anything is done; what cannot be is refused. On fewer or more instances: `--parallelism`.

    Exit code 0: done. 1: the backup, the place or the sinks do not allow it. 2: the topology does not fit.
    """
    if (known := at_console(file)) is not None:
        give(known, "restore", at, token, authority, as_json=as_json, name=str(folder), fresh_sinks=fresh_sinks or None)
        return
    sets = [*(sets or ()), *([] if name is None else [f"topology={name}"])]
    topology = load(file, sets, quiet=True)
    from penstock.runtime.restore import RestoreSettings, look_at
    from penstock.runtime.restore import restore as carry_out
    from penstock.runtime.run import RunSettings

    settings = RestoreSettings(folder.absolute(), parallelism, replacing, fresh_sinks)
    run = RunSettings(state=state, coordinator=coordinator, memory=memory)
    settled_state(topology, state)
    with busy("checking the backup") as at_work:
        found = look_at(topology, settings, run, at_work.look)
        for note in found.notes:
            err.print(f"note: {note}", soft_wrap=True)
        if not dry:
            carry_out(found, run, at_work.say)
    again = shlex.join(["penstock", "run", *([str(file)] if file else []),
                        *(part for item in sets for part in ("--set", item))])
    if start and not dry:
        run_command(file, sets, as_json=as_json, state=state, memory=memory, coordinator=coordinator)
    elif as_json:
        typer.echo(json.dumps({"topology": topology.name, "epoch": found.manifest.epoch,
                               "instances": found.instances, "notes": found.notes, "state": str(found.state.path)}))
    elif dry:
        typer.echo(f"'{topology.name}' can go on from epoch {found.manifest.epoch}; nothing was changed")
    else:
        typer.echo(f"'{topology.name}' is at epoch {found.manifest.epoch}; `{again}` goes on from there")
