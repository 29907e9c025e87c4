"""The options that all commands have that speak to a console."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from penstock.cli.screen import err, fail

if TYPE_CHECKING:
    from penstock.console.client import Client

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MOST_SHOWN = 200

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", metavar="DIR", envvar="PENSTOCK_HOME",
                 help="Where a console keeps what it was given. By default ~/.penstock."),
]  # fmt: skip
ConsoleCoordinator = Annotated[
    str | None,
    typer.Option("--coordinator", metavar="URL", envvar="PENSTOCK_COORDINATOR",
                 help="Where masters and supervisors meet, for example `zookeeper://host:2181/penstock`. By default a "
                 "file in the home, for one machine."),
]  # fmt: skip
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="URL", envvar="PENSTOCK_CONSOLE",
                 help="The console's address. By default http://127.0.0.1:8470."),
]  # fmt: skip
TokenOption = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", envvar="PENSTOCK_TOKEN", help="For a console that asks for one."),
]
AuthorityOption = Annotated[
    Path | None,
    typer.Option("--authority", metavar="FILE", envvar="PENSTOCK_AUTHORITY",
                 help="The certificate of who vouches for the console, where this machine does not know it."),
]  # fmt: skip


def at_console(file: Path | None) -> str | None:
    """The name of a topology of a console, where that is meant and not a file: there is no such file."""
    if file is None or not _NAME.fullmatch(str(file)) or file.exists():
        return None
    return str(file)


@contextmanager
def meant_as_name(name: str) -> Iterator[None]:
    """Where no console answers, a file may have been meant."""
    from penstock.console.client import NoAnswer

    try:
        yield
    except NoAnswer as error:
        raise NoAnswer(f"there is no file '{name}' here, and {error}") from None


def give(name: str, verb: str, at: str | None, token: str | None, authority: Path | None, /, as_json: bool = False,
         **arguments: Any) -> None:  # fmt: skip
    """Give a command to a console, and say what it answered."""
    from penstock.cli.busy import busy

    with busy(f"{verb} {name}"), meant_as_name(name):
        answer = client(at, token, authority).command(name, verb, **arguments)
    typer.echo(json.dumps({"topology": name, **answer}) if as_json else f"{name}: {answer['said']}")
    warn(answer)


def check_shown(option: str, wanted: int) -> None:
    """Ends the command where more is to be shown than a console tells at once."""
    if wanted > _MOST_SHOWN:
        fail(f"{option} {wanted}: a console shows at most {_MOST_SHOWN}; give the topology's file to see more", 2)



def warn(answer: Mapping[str, Any]) -> None:
    """Say what was not as it should be, although the command was carried out."""
    if "warning" in answer:
        err.print(Text.assemble(("warning: ", "yellow"), answer["warning"]), soft_wrap=True)


def client(at: str | None, token: str | None, authority: Path | None = None) -> Client:
    """The console that a command speaks to."""
    from penstock.console.client import DEFAULT_URL, Client

    return Client(at or DEFAULT_URL, token or "", authority)
