"""`penstock submit`: hand a topology over to a console."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.cli.busy import busy
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, client, warn
from penstock.cli.loading import File, Sets, load, parse_sets, topology_path
from penstock.topology.loading import find_topology_file


def submit(
    file: File = None,
    sets: Sets = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of the version that is there; with replicas, one "
                           "after the other.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew instead of going on from what a version before has left.")
    ] = False,
    spread: Annotated[
        bool, typer.Option("--spread", help="Each replica on a node of its own. All nodes must see what sinks write "
                           "to, and sources that are not among the files.")
    ] = False,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as a JSON object.")] = False,
) -> None:
    """Hand a topology over to a console, which runs it from then on.

    The files of the topology's folder are sent along, but hidden ones and `out`; they are limited to 50 MB. What it
    writes to relative paths is on the node that runs it, in `nodes/NAME/TOPOLOGY/work` of its home.

    Exit code 0: it was taken. 1: the console refused it, or does not answer. 2: the topology is wrong.
    """
    path = topology_path(file)
    topology = load(path, sets, quiet=True)
    from penstock.console.bundle import pack

    folder = topology.folder.absolute()
    found = path if path.is_file() else find_topology_file(path)
    assert found is not None, "it was loaded"
    name = found.absolute().relative_to(folder).as_posix()
    # What the environment sets, too: the topology was checked with it.
    given = [f"{key}={value}" for key, value in parse_sets(sets).items()]
    with busy("submitting"):
        answer = client(at, token, authority).submit(pack(folder), name, given, replace, fresh, spread)
    if as_json:
        typer.echo(json.dumps(answer))
    elif "digest" not in answer:
        # The answer was lost on its way, and so was what came of it.
        typer.echo(f"{answer['said']}, and at `penstock list`")
    else:
        typer.echo(f"{answer['said']}, version {answer['digest'][:12]}; see `penstock list`, or the console's page")
    warn(answer)
