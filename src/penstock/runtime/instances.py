"""How many instances the stateful operators of a start have. Pure.

It is one number for all of them: Spark divides the state of a whole query in the same way. Once there is state, it
stays divided as it is, whatever machine it goes on with, until `penstock rescale` divides it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.topology.model import Topology


def asked_instances(topology: Topology) -> int | None:
    """What the topology's file asks for; None when it leaves that to the machine."""
    return max((op.parallelism for op in topology.operators if op.stateful and op.parallelism), default=None)


def instances(topology: Topology, cores: int, shape: Mapping[str, Any] | None) -> int:
    """The number for a start on so many cores; `shape` is that of the state it goes on from.

    It is another one than the state's only when the file asks for it since: such a start is refused, and the user told
    of `penstock rescale`.
    """
    asked = asked_instances(topology)
    if shape is None or not shape.get("state"):
        return asked or cores
    divided: int = shape["state partitions"]
    return divided if asked is None or asked == shape.get("asked instances", divided) else asked
