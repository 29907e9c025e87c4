"""What an operator reads, as written: one stream, a list of streams that are merged, or named ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.errors import TopologyError
from penstock.topology.join import EVERY_PORT
from penstock.topology.model import Operator, StreamRef
from penstock.topology.values import check_name, to_streams


class Inputs(NamedTuple):
    """The streams, and the port of each where ports are named: as `Operator` has them."""

    streams: tuple[StreamRef, ...] = ()
    ports: tuple[str, ...] = ()


def to_inputs(value: object) -> Inputs:
    """`orders`, `[orders, returns]`, or `{orders: [orders, returns], payments: payments}`."""
    if not isinstance(value, Mapping):
        return Inputs(to_streams(value))
    if not value:
        raise TopologyError("no port; write a stream, or a mapping from port to stream")
    named = [(check_name(str(port)), ref) for port, streams in value.items() for ref in _streams(str(port), streams)]
    return Inputs(tuple(ref for _, ref in named), tuple(port for port, _ in named))


def write_inputs(operator: Operator) -> Any:
    """What `to_inputs` reads back."""
    by_port = operator.by_port()
    return {port: _written(refs) for port, refs in by_port.items()} if by_port else _written(operator.inputs)


def write_times(times: tuple[tuple[str, str], ...]) -> Any:
    """What `to_times` reads back."""
    by_port = dict(times)
    return by_port.get(EVERY_PORT, by_port)


def _streams(port: str, value: object) -> tuple[StreamRef, ...]:
    try:
        return to_streams(value)
    except TopologyError as error:
        raise TopologyError(f"port '{port}': {error}") from None


def _written(refs: tuple[StreamRef, ...]) -> Any:
    return str(refs[0]) if len(refs) == 1 else [str(ref) for ref in refs]
