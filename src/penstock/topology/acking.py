"""Which operators ack their tuples themselves."""

from __future__ import annotations

import inspect

from penstock.errors import TopologyError
from penstock.topology.bolt import Bolt
from penstock.topology.code import load_user_object
from penstock.topology.model import Custom, Operator, Topology


def acks_itself(operator: Operator, topology: Topology) -> bool:
    """Whether it is a bolt with `auto_ack = False`, no key and one input, in a topology with `acking: true`.

    Imports the user's code then. Code that cannot be imported acks nothing; validation reports it.
    """
    if not topology.acking or not isinstance(operator, Custom) or operator.key or operator.input_ports:
        return False
    try:
        found = load_user_object(operator.code, topology.folder)
    except TopologyError:
        return False
    return inspect.isclass(found) and issubclass(found, Bolt) and not found.auto_ack
