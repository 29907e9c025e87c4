"""`penstock token`: who may look at a console, and who may command it."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from penstock.cli.console_options import ConsoleCoordinator, HomeOption, warn
from penstock.cli.screen import err, fail, out
from penstock.errors import TopologyError
from penstock.topology.values import to_seconds

if TYPE_CHECKING:
    from penstock.console.tokens import Tokens

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Who may look at a console, and command it.")


@app.command()
def create(
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="`viewer` may look, `operator` may command.")
    ] = "viewer",
    name: Annotated[str, typer.Option("--name", help="Whose it is; the audit log says it.")] = "somebody",
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DURATION", help="After `12h`, `30d`; else never.")
    ] = None,
    home: HomeOption = None,
    coordinator: ConsoleCoordinator = None,
) -> None:
    """Make a token, and show it: once, for only a digest of it is kept."""
    from penstock.console.tokens import Role

    if role not in list(Role):
        fail(f"--role {role}: write viewer or operator", 2)
    try:
        seconds = None if expires is None else to_seconds(expires)
    except TopologyError as error:
        fail(f"--expires: {error}", 2)
    with _tokens(home, coordinator) as tokens:
        token = tokens.create(name, Role(role), seconds)
        made = tokens.check(token)
        assert made is not None, "it was made a moment ago"
        # Before anybody has it.
        _note(home, "token create", token=made.id, name=name, allows=role, expires=expires)
    typer.echo(token)
    err.print("keep it: it is not shown again", style="dim")


@app.command("list")
def list_tokens(home: HomeOption = None, coordinator: ConsoleCoordinator = None) -> None:
    """The tokens there are, without what they are."""
    with _tokens(home, coordinator) as tokens:
        found = tokens.all()
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("id", "role", "name", "expires"):
        table.add_column(column)
    for token in found:
        until = "never" if token.expires is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(token.expires))
        table.add_row(token.id, token.role, token.name, "expired" if token.expired else until)
    out.print(table if found else "no tokens yet: `penstock token create` makes one")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="As `penstock token list` shows it.")],
    home: HomeOption = None,
    coordinator: ConsoleCoordinator = None,
) -> None:
    """Have a token allow nothing any more."""
    with _tokens(home, coordinator) as tokens:
        if not tokens.revoke(key):
            fail(f"there is no token '{key}': see `penstock token list`", 1)
        _note(home, "token revoke", token=key)
    typer.echo(f"token {key} allows nothing any more")


def _note(home: Path | None, what: str, **details: str | None) -> None:
    """Write down who has made or revoked a token: whoever may write where the tokens are."""
    from penstock.console.audit import Audit, Outcome
    from penstock.console.home import ConsoleHome
    from penstock.console.tokens import Person, Role

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # In some containers nobody has a name.
        user = f"user {os.getuid()}"
    who = Person(user, Role.OPERATOR)
    unwritten = Audit(ConsoleHome.of(home).audit).note(who, socket.gethostname(), what, None, **details,
                                                       outcome=Outcome.DONE)  # fmt: skip
    warn({"warning": unwritten} if unwritten else {})


@contextmanager
def _tokens(home: Path | None, coordinator: str | None) -> Iterator[Tokens]:
    from penstock.console.home import ConsoleHome
    from penstock.console.tokens import Tokens
    from penstock.coordination.opening import open_coordinator

    place = ConsoleHome.of(home)
    address = coordinator or place.coordinator
    place.make_private(address)
    opened = open_coordinator(address)
    try:
        yield Tokens(opened)
    finally:
        opened.close()
