"""`penstock interval`: another time from the start of an epoch to that of the next, while it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.orders import check_operator, opened_orders
from penstock.cli.screen import fail
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies
from penstock.epochs.orders import EVERYTHING
from penstock.errors import TopologyError
from penstock.topology.values import to_seconds

DEFAULT = "default"


def interval(
    file: Topologies,
    wanted: Annotated[str, typer.Argument(metavar="DURATION", show_default=False,
                                          help="Between the starts of two epochs: 500ms, 2s; or `default`.")],
    operator: Annotated[str | None, typer.Option(
        metavar="NAME", help="For an operator: an epoch passes all of them, so of several the longest counts.")] = None,
    sets: Sets = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Have epochs begin at another interval, from the next one on; `default` is what the topology says.

    It holds for all replicas, and until another one is given, or the topology starts anew.
    """
    if (name := at_console(file)) is not None:
        give(name, "interval", at, token, authority, interval=wanted, operator=operator)
        return
    topology = load(file, sets, quiet=True)
    try:
        seconds = None if wanted == DEFAULT else to_seconds(wanted)
    except TopologyError as error:
        fail(f"{error}; or `default`", 2)
    check_operator(topology, operator)
    with opened_orders(topology, state, coordinator) as orders:
        orders.set_interval(seconds, operator or EVERYTHING)
        now = orders.interval()
    shown = topology.epoch.interval if now is None else now
    typer.echo(f"{topology.name}: an epoch every {shown:g} s" if shown else f"{topology.name}: no pause between epochs")
