"""`penstock list`, `events`, `logs`, `start` and `remove`: the topologies of a console."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, client, give, warn
from penstock.cli.screen import out
from penstock.errors import ConsoleError

_LOOK_SECONDS = 1.0
_COLOURS = {"running": "green", "ended": "green", "failed": "red", "away": "red"}
_TONES = {"good": "green", "bad": "red"}

Name = Annotated[str, typer.Argument(metavar="NAME", help="A topology of the console.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")]


def list_topologies(
    at: AtOption = None, token: TokenOption = None, authority: AuthorityOption = None, as_json: AsJson = False
) -> None:
    """List the topologies of a console, and how they are."""
    found: list[dict[str, Any]] = client(at, token, authority).get("/api/topologies")
    if as_json:
        for one in found:
            typer.echo(json.dumps(one))
        return
    if not found:
        typer.echo("no topologies yet: `penstock submit FILE` hands one over")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("topology", "", "", "epoch", "delivered", "node", ""):
        table.add_column(column, justify="right" if column in ("epoch", "delivered") else "left")
    for one in found:
        table.add_row(one["name"], Text(one["how"], style=_COLOURS.get(one["how"], "yellow")), one["safety"],
                      f"{one['epoch']:,}", f"{sum(one['delivered'].values()):,}", ", ".join(one["nodes"]),
                      Text(one["why"].splitlines()[-1] if one["why"] else "", style="dim"))  # fmt: skip
    out.print(table)


def events(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of this topology only.")] = None,
    last: Annotated[int, typer.Option("--last", min=1, max=500, help="How many.")] = 50,
    follow: Follow = False,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    as_json: AsJson = False,
) -> None:
    """Tell what has happened to the topologies of a console."""
    console, known = client(at, token, authority), 0
    while True:
        for event in console.get("/api/events", topology=name, last=last):
            # Not by their times: another master, with another clock, may lead by now.
            if 0 < event["number"] <= known or (follow and not event["number"]):
                continue
            known = max(known, event["number"])
            when = time.strftime("%H:%M:%S", time.localtime(event["time"]))
            if as_json:
                typer.echo(json.dumps(event))
            else:
                out.print(Text.assemble((when, "dim"), f" {event['topology']}: ",
                                        (event["words"], _TONES.get(event["tone"], ""))), soft_wrap=True)  # fmt: skip
        if not follow:
            return
        time.sleep(_LOOK_SECONDS)


def logs(
    name: Name,
    replica: Annotated[str | None, typer.Option("--replica", metavar="N", help="Of this replica.")] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="NODE", help="Of this node only.")] = None,
    follow: Follow = False,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Show the log of a topology of a console, or of one of its replicas, wherever it runs.

    Where its replicas have nodes of their own, each line has the node before it.
    """
    console = client(at, token, authority)
    shown: dict[str | None, str] = {}
    """By node, what was there the last time."""
    while True:
        homes = [node] if replica or node else console.get(f"/api/topologies/{name}")["nodes"] or [None]
        for home in homes:
            try:
                text = console.text(f"/api/topologies/{name}/log", replica=replica, node=home)
            except ConsoleError as error:
                if len(homes) == 1:
                    raise
                # The others are shown all the same.
                typer.echo(f"{home}: {error}", err=True)
                continue
            lines, whole = new_lines(text, shown.get(home, ""))
            said = lines if whole else ["… lines are left out: more was said at once than is shown", *lines]
            for line in said:
                typer.echo(line if len(homes) == 1 else f"{home}: {line}")
            shown[home] = text
        if not follow:
            return
        time.sleep(_LOOK_SECONDS)


def new_lines(text: str, before: str) -> tuple[list[str], bool]:
    """The lines of the end of a log that stand behind those that were there before, and whether those are all."""
    lines, known = text.splitlines(), before.splitlines()
    if not known:
        return lines, True
    # Both are ends of the same log: the later one has lost some lines at its beginning, and gained some at its end.
    for length in range(len(lines), 0, -1):
        most = min(length, len(known))
        if lines[length - most : length] == known[-most:]:
            return lines[length:], True
    # The log was cut, and has said nothing since; or what came between is not among what is shown.
    return lines, not lines


def start(name: Name, at: AtOption = None, token: TokenOption = None, authority: AuthorityOption = None) -> None:
    """Have a console run a topology again that was stopped."""
    give(name, "start", at, token, authority)


def remove(name: Name, at: AtOption = None, token: TokenOption = None, authority: AuthorityOption = None) -> None:
    """Have a console forget a topology that does not run; what it has written stays."""
    answer = client(at, token, authority).remove(name)
    typer.echo(answer["said"])
    warn(answer)
