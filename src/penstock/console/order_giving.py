"""The commands that are orders to a running topology: given by its node itself, at once.

Every other command is a `penstock` process of its own, which takes a second to come up; an order is one entry in the
topology's coordinator, and its replicas look there ten times a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.console.commands import Verb
from penstock.console.desired import Wanted
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import EVERYTHING, Orders
from penstock.topology.values import to_seconds

ORDERS = (Verb.FREEZE, Verb.UNFREEZE, Verb.INTERVAL)
_DEFAULT = "default"


def give_order(wanted: Wanted, address: str, verb: str, words: Sequence[str]) -> str:
    """Have it stand in the topology's coordinator; returns what is to be said of it.

    `words` are those of `commands.words_for`, which were checked; raises CoordinationError.
    """
    coordinator = open_coordinator(address)
    try:
        orders = Orders(coordinator)
        return _interval(orders, *words) if verb == Verb.INTERVAL else _each(wanted, orders, verb, words)
    finally:
        coordinator.close()


def _interval(orders: Orders, interval: str, _: str = "--operator", operator: str = EVERYTHING) -> str:
    orders.set_interval(None if interval == _DEFAULT else to_seconds(interval), operator)
    # Of several operators the longest counts, which need not be this one.
    seconds = orders.interval()
    if seconds is None:
        return "between epochs it waits as its file says"
    return f"an epoch every {seconds:g} s" if seconds else "no pause between epochs"


def _each(wanted: Wanted, orders: Orders, verb: str, words: Sequence[str]) -> str:
    chosen = dict(zip(words[::2], words[1::2], strict=True))
    operator = chosen.get("--operator", EVERYTHING)
    replicas = [chosen["--replica"]] if "--replica" in chosen else [str(n + 1) for n in range(wanted.replicas)]
    order, new, old = ((orders.freeze, "is frozen", "was frozen already") if verb == Verb.FREEZE
                       else (orders.unfreeze, "goes on", "was not frozen"))  # fmt: skip
    said = {replica: new if order(replica, operator) else old for replica in replicas}
    return "\n".join(f"{_who(wanted, replica, operator)} {what}" for replica, what in said.items())


def _who(wanted: Wanted, replica: str, operator: str) -> str:
    whole = f"replica {replica}" if wanted.replicas > 1 else wanted.name
    return whole if operator == EVERYTHING else f"{operator} of {whole}"
