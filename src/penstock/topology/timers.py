"""Which operators are called by timers."""

from __future__ import annotations

from penstock.errors import TopologyError
from penstock.topology.bolt import has_timers
from penstock.topology.code import load_user_object
from penstock.topology.model import Custom, Operator, Topology


def uses_timers(operator: Operator, topology: Topology) -> bool:
    """Whether it is a bolt with a key and an `on_timer`.

    Imports the user's code. Code that cannot be imported has no timers; validation reports it.
    """
    if not isinstance(operator, Custom) or not operator.key:
        return False
    try:
        return has_timers(load_user_object(operator.code, topology.folder))
    except TopologyError:
        return False
