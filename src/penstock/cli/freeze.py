"""`penstock freeze` and `penstock unfreeze`: have a replica begin no further epoch, and let it go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.orders import Replica, check_operator, named_replicas, opened_orders
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies
from penstock.topology.model import Topology

if TYPE_CHECKING:
    from penstock.epochs.orders import Orders

Operator = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="An operator of the replica: an epoch passes all of them, so the replica "
                 "waits until none is frozen."),
]


def freeze(
    file: Topologies,
    sets: Sets = None,
    replica: Replica = None,
    operator: Operator = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Have a replica, or all of them, begin no further epoch until `penstock unfreeze`.

    It stays there and keeps its place: its siblings deliver meanwhile, and it works off what has gathered afterwards.
    A topology without replicas pauses, and goes on to receive. The order holds until it is taken back, also for a
    replica that is started later.
    """
    if (name := at_console(file)) is not None:
        give(name, "freeze", at, token, authority, replica=replica, operator=operator)
        return
    topology = load(file, sets, quiet=True)

    def order(orders: Orders, name: str, what: str) -> str:
        new = orders.freeze(name, what)
        return f"{'is' if new else 'was'} frozen{'' if new else ' already'}"

    _order_each(topology, replica, operator, state, coordinator, order)


def unfreeze(
    file: Topologies,
    sets: Sets = None,
    replica: Replica = None,
    operator: Operator = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Let a replica, or all of them, go on; without `--operator`, whatever of it was frozen."""
    if (name := at_console(file)) is not None:
        give(name, "unfreeze", at, token, authority, replica=replica, operator=operator)
        return
    topology = load(file, sets, quiet=True)

    def order(orders: Orders, name: str, what: str) -> str:
        return "goes on" if orders.unfreeze(name, what) else "was not frozen"

    _order_each(topology, replica, operator, state, coordinator, order)


def _order_each(topology: Topology, replica: str | None, operator: str | None, state: Path | None,
                coordinator: str | None, order: Callable[[Orders, str, str], str]) -> None:  # fmt: skip
    """Give an order to the replicas that are meant, and say what came of it."""
    from penstock.epochs.orders import EVERYTHING

    check_operator(topology, operator)
    with opened_orders(topology, state, coordinator) as orders:
        for name in named_replicas(topology, replica):
            typer.echo(f"{_who(topology, name, operator)} {order(orders, name, operator or EVERYTHING)}")


def _who(topology: Topology, replica: str, operator: str | None) -> str:
    whole = f"replica {replica}" if topology.replicas > 1 else topology.name
    return f"{operator} of {whole}" if operator else whole
