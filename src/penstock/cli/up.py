"""`penstock up`, `master` and `supervisor`: the console, on one machine or on several."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console_options import AuthorityOption, ConsoleCoordinator, HomeOption
from penstock.cli.screen import err, fail

Host = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen. Other than on loopback, tokens are required.")
]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="On which port.")]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="Speak TLS, with this certificate (PEM).")
]
CertificateKey = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The certificate's key (PEM).")]
OwnToken = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", envvar="PENSTOCK_TOKEN",
                 help="An operator's, with which other masters are asked for the files of topologies."),
]  # fmt: skip
NodeName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="What to call this machine. By default its host name.")
]


def up(
    host: Host = "127.0.0.1",
    port: Port = 8470,
    home: HomeOption = None,
    coordinator: ConsoleCoordinator = None,
    name: NodeName = "",
    certificate: Certificate = None,
    key: CertificateKey = None,
    token: OwnToken = None,
    authority: AuthorityOption = None,
) -> None:
    """Start the console on this machine, with its page: a master and a supervisor.

    Then `penstock submit FILE`, and look at http://127.0.0.1:8470. Ctrl-C ends the console, and the topologies go on:
    the next `penstock up` finds them.
    """
    _serve(host, port, home, coordinator, name, certificate, key, token or "", authority, master=True,
           supervisor=True)  # fmt: skip


def master(
    host: Host = "127.0.0.1",
    port: Port = 8470,
    home: HomeOption = None,
    coordinator: ConsoleCoordinator = None,
    certificate: Certificate = None,
    key: CertificateKey = None,
    token: OwnToken = None,
    authority: AuthorityOption = None,
) -> None:
    """Start a master with its page, and no supervisor.

    Of several masters with the same coordinator one leads. The others show the same page, refuse commands, and one of
    them leads some seconds after the first has died. Each copies the files of all topologies from the others.
    """
    _serve(host, port, home, coordinator, "", certificate, key, token or "", authority, master=True,
           supervisor=False)  # fmt: skip


def supervisor(
    join: Annotated[
        str | None,
        typer.Option("--join", metavar="URL", help="The coordinator of the console, `zookeeper://host:2181/penstock`."),
    ] = None,
    home: HomeOption = None,
    name: NodeName = "",
    token: OwnToken = None,
    authority: AuthorityOption = None,
) -> None:
    """Start the supervisor of this machine: it runs the topologies that the console's master gives it.

    It may be killed: its topologies go on, and the next one takes them over.
    """
    _serve("127.0.0.1", 8470, home, join, name, None, None, token or "", authority, master=False, supervisor=True)


def _serve(host: str, port: int, home: Path | None, coordinator: str | None, name: str, certificate: Path | None,
           key: Path | None, token: str = "", authority: Path | None = None, *, master: bool,
           supervisor: bool) -> None:  # fmt: skip
    from penstock.console.home import ConsoleHome
    from penstock.console.server import ConsoleSettings, serve

    if (certificate is None) != (key is None):
        fail("--certificate and --key go together", 2)
    for file in (certificate, key, authority):
        if file is not None and not file.is_file():
            fail(f"{file} is not a file", 2)
    place = ConsoleHome.of(home)
    settings = ConsoleSettings(place, coordinator or place.coordinator, host, port, name, master, supervisor,
                               certificate, key, token, authority)  # fmt: skip
    with suppress(KeyboardInterrupt):
        serve(settings, lambda words: err.print(words, markup=False, highlight=False, soft_wrap=True))
    err.print("the console has ended; topologies go on")
