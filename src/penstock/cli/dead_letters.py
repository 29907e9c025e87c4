"""`penstock dead-letters`: look at tuples that failed for good, have them replayed, or be done with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.console_options import (
    AtOption,
    AuthorityOption,
    TokenOption,
    at_console,
    check_shown,
    client,
    give,
    meant_as_name,
)
from penstock.cli.loading import Sets, load
from penstock.cli.screen import fail, show_listing
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies

if TYPE_CHECKING:
    from penstock.runtime.buried import Buried

_SHOWN = 60


def dead_letters(
    file: Topologies,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these letters.", show_default=False)
    ] = None,
    sets: Sets = None,
    operator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this operator, or of this source.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Have their source tuples read again when the topology is started next.")
    ] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Be done with them: they are not shown any more.")] = False,
    last: Annotated[int, typer.Option(min=1, help="How many to show, the newest.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    spread: Annotated[bool, typer.Option("--spread", help="Other nodes have replicas, too.", hidden=True)] = False,
) -> None:
    """Show the tuples and records that failed for good, with their errors; replay them, or discard them.

    Correct the code first, then `--replay`: the source tuples are read once more, in the epoch after the last one. That
    is exact, and so refused where somebody else would have the tuple twice. The topology must be stopped; a console
    stops it, and starts it again. `--discard` deletes nothing: the file keeps what was discarded.

    Exit code 0: done. 1: there is no such letter, or one cannot be replayed. 2: the topology is wrong.
    """
    if replay and discard:
        fail("--replay or --discard, not both", 2)
    action = "replay" if replay else "discard" if discard else None
    if (name := at_console(file)) is not None:
        _at_console(name, action, operator, ids or [], last, as_json, at, token, authority)
        return
    topology = load(file, sets, quiet=True)
    from penstock.runtime.buried import Graveyard
    from penstock.runtime.state_folder import StateFolder

    graveyard = Graveyard(topology)
    letters = graveyard.letters(operator, ids or ())
    if action is None:
        _show(topology.name, [summary(letter) for letter in letters[-last:]], len(letters), as_json)
    elif not letters:
        typer.echo(f"there is nothing to {action}")
    elif discard:
        graveyard.discard(letters)
        typer.echo(f"{_letters(len(letters))} discarded; the file keeps them: {graveyard.path}")
    else:
        home = StateFolder.of(topology, state)
        number = graveyard.replay(letters, home, home.coordinator_for(topology, coordinator), spread)
        tuples = "1 source tuple is" if number == 1 else f"{number:,} source tuples are"
        typer.echo(f"{tuples} read again in the first epoch of the next `penstock run`")


def summary(letter: Buried) -> dict[str, Any]:
    """A letter as programs read it."""
    return {"id": letter.id, "where": letter.where, "what": letter.what, **letter.fields}


def _at_console(name: str, action: str | None, operator: str | None, ids: list[str], last: int, as_json: bool,
                at: str | None, token: str | None, authority: Path | None) -> None:  # fmt: skip
    if action is not None:
        give(name, "dead-letters", at, token, authority, as_json=as_json, action=action, operator=operator,
             letters=ids or None)  # fmt: skip
        return
    check_shown("--last", last)
    with meant_as_name(name):
        told = client(at, token, authority).get(f"/api/topologies/{name}/dead-letters", operator=operator, last=last)
    chosen = [letter for letter in told if not ids or letter["id"] in ids]
    _show(name, chosen, len(chosen), as_json)


def _show(name: str, letters: list[dict[str, Any]], number: int, as_json: bool) -> None:
    show_listing(
        letters, as_json, title=f"dead letters of {name}",
        columns={"id": "left", "epoch": "right", "where": "left", "what": "left", "error": "left"},
        rows=([each["id"], str(each["epoch"]), each["where"], _short(each["what"]), _short(each["error"])]
              for each in letters),
        nothing=f"'{name}' has no dead letters")
    if not as_json and number > len(letters):
        typer.echo(f"the newest {len(letters)} of {number:,}; --last shows more", err=True)


def _short(text: str) -> str:
    text = text.splitlines()[0] if text else ""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _letters(number: int) -> str:
    return "1 dead letter is" if number == 1 else f"{number:,} dead letters are"

