"""Joins of two streams: tuples that belong together, and whose times are near each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.topology.model import Operator, option

KINDS = ("inner", "left")

EVERY_PORT = ""
"""In `Join.on`, the port of a column that has the same name on both."""


@dataclass(frozen=True)
class Join(Operator):
    """Put together the tuples of two streams that belong together and are near in time."""

    keyword: ClassVar[str] = "join"
    argument: ClassVar[str] = "condition"
    stateful: ClassVar[bool] = True
    named_ports: ClassVar[bool] = True

    condition: str = option("Which tuples belong together: `orders.id = payments.order_id`.", type="expression")
    within: float = option("How far apart the times of two tuples may lie.", type="duration", required=True)
    on: tuple[tuple[str, str], ...] = option(
        "The column with a tuple's time: one name, or a mapping from port to name. Without it, the time of its epoch.",
        default=(), type="times")
    kind: str = option("`inner`: pairs only. `left`: also the first port's tuples that find no partner in time.",
                       default="inner", type="choice", choices=KINDS)
    lateness: float = option("How far a tuple's time may lie behind the latest seen before it is too late.",
                             default=0.0, type="duration")

    @property
    def keeps_left(self) -> bool:
        """Whether a tuple of the first port appears without a partner too."""
        return self.kind == "left"

    def time_column(self, port: str) -> str | None:
        """The column with the time of a port's tuples; None for the time of their epoch."""
        times = dict(self.on)
        return times.get(port, times.get(EVERY_PORT))


@dataclass(frozen=True)
class JoinedColumn:
    """A column of the result: the port and the column that it comes from, and its name."""

    port: str
    column: str
    name: str


def joined_columns(columns: Mapping[str, Sequence[str]]) -> list[JoinedColumn]:
    """The columns of a join of these ports: the first port's, then the second's.

    A name that both have becomes two: `orders_amount` and `payments_amount`.
    """
    lowered = [name.lower() for names in columns.values() for name in names]
    return [
        JoinedColumn(port, name, f"{port}_{name}" if lowered.count(name.lower()) > 1 else name)
        for port, names in columns.items()
        for name in names
    ]
