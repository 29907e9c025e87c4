"""Penstock: a distributed, fault-tolerant, load-adaptive stream processor on Apache Spark."""

from penstock.errors import (
    ConnectorError,
    CoordinationError,
    DeliveryError,
    MachineError,
    MalformedRecord,
    OperatorError,
    PenstockError,
    TopologyError,
)
from penstock.topology.bolt import Bolt, Context, Fail
from penstock.topology.model import Topology
from penstock.topology.spout import Spout

__version__ = "0.1.0"

__all__ = [
    "Bolt",
    "ConnectorError",
    "Context",
    "CoordinationError",
    "DeliveryError",
    "Fail",
    "MachineError",
    "MalformedRecord",
    "OperatorError",
    "PenstockError",
    "Spout",
    "Topology",
    "TopologyError",
    "__version__",
]
