"""Where an operator's tuples are counted: as few places as possible, since each costs time in every epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.plan.graph import (
    UNACKED,
    Apply,
    Exchange,
    Gather,
    Merge,
    Plan,
    Port,
    Read,
    Share,
    Step,
    Write,
    operators_in_order,
)
from penstock.topology.model import Dup, Operator, RouteKind, Select, StreamRef, Union

UNNAMED_PORT = "default"
"""What the port without a name is called where others have one."""

PASSES_ALL = (Select, Dup, Union)
"""Operators that give one tuple for each they take: their count follows from their inputs'."""


@dataclass(frozen=True)
class Measured:
    """What has been counted so far."""

    tuples: Mapping[str, int]
    """By source, and by operator of `counts_needed` that has been counted yet, the tuples that have left it."""
    delivered: Mapping[str, int]
    """By sink."""
    ports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By operator, the tuples of each of `ports_to_count`."""


def counting_sink(plan: Plan, step: Step) -> str | None:
    """The sink that receives exactly the tuples which leave `step`, so that its count tells theirs."""
    readers = plan.readers(step.id)
    if len(readers) != 1:
        return None
    match readers[0]:
        case Write(sink=sink):
            return sink.name
        case Apply(operator=operator) as reader if isinstance(operator, PASSES_ALL):
            return counting_sink(plan, reader)
        case Exchange(route=route) as reader if route.kind is not RouteKind.ALL:
            return counting_sink(plan, reader)
        case _:
            return None


def counts_needed(plan: Plan) -> frozenset[str]:
    """The operators whose tuples must be counted where they leave; those of all others can be derived."""
    return frozenset(
        step.operator.name
        for step in plan.steps
        if isinstance(step, Apply)
        and not isinstance(step.operator, PASSES_ALL)
        and counting_sink(plan, step) is None
    )


def ports_to_count(operator: Operator) -> tuple[str, ...]:
    """The output ports that are counted one by one where the operator is counted, by what they are called.

    None of an operator that has only one. Of all others the sum is what the operator gives: it is not counted again.
    """
    ports = operator.output_ports()
    return tuple(port or UNNAMED_PORT for port in ports) if len(ports) > 1 else ()


def derive_counts(plan: Plan, measured: Measured) -> dict[str, int | None]:
    """The tuples of every operator: measured, or told by its sink, or by its inputs; None where unknown.

    An operator that a rewrite took away is unknown, unless it passes on all that it takes.
    """
    known = _counts_by_stream(plan, measured)
    for operator in operators_in_order(plan.topology):
        if isinstance(operator, PASSES_ALL):
            known.setdefault(StreamRef(operator.name), _sum([known.get(stream) for stream in operator.inputs]))
    return {operator.name: known.get(StreamRef(operator.name)) for operator in plan.topology.operators}


def derive_port_counts(plan: Plan, measured: Measured) -> dict[str, dict[str, int]]:
    """By operator, the tuples of its named output ports; those that are unknown are left out.

    What a port gives is measured with the operator. Before that it is known where it all reaches one sink, or where
    that is so of all other ports.
    """
    by_step = _counts_by_step(plan, measured)
    found = {operator.name: dict(measured.ports.get(operator.name, {})) for operator in plan.topology.operators}
    for step in plan.steps:
        number = by_step[step.id]
        if isinstance(step, Port) and step.name != UNACKED and number is not None:
            found[_emitter(plan, step).operator.name][step.name or UNNAMED_PORT] = number
    return found


def _counts_by_step(plan: Plan, measured: Measured) -> dict[str, int | None]:
    by_step: dict[str, int | None] = {}
    for step in plan.steps:
        by_step[step.id] = _count_of(plan, step, by_step, measured)
    return by_step


def _counts_by_stream(plan: Plan, measured: Measured) -> dict[StreamRef, int | None]:
    """What the plan's own steps give; with the name of an operator alone, what it gives on all ports."""
    found: dict[StreamRef, int | None] = {}
    for step_id, number in _counts_by_step(plan, measured).items():
        match plan.step(step_id):
            case Read(source=source):
                found[StreamRef(source.name)] = number
            case Apply(operator=operator):
                found[StreamRef(operator.name)] = number
            case Port(name=name) as port:
                found.setdefault(StreamRef(_emitter(plan, port).operator.name, name), number)
    return found


def _sum(numbers: list[int | None]) -> int | None:
    """None where any is unknown."""
    return None if None in numbers else sum(number for number in numbers if number is not None)


def _emitter(plan: Plan, port: Port) -> Apply:
    """The operator of a port."""
    step = plan.step(port.input)
    while isinstance(step, Share):
        step = plan.step(step.input)
    assert isinstance(step, Apply), "only operators have ports"
    return step


def _count_of_port(plan: Plan, port: Port, total: int | None, measured: Measured) -> int | None:
    """Measured, or told by its sink, or what the sinks of all other ports leave of the total."""
    operator = _emitter(plan, port).operator
    counted = measured.ports.get(operator.name, {}).get(port.name or UNNAMED_PORT)
    if counted is not None:
        return counted
    siblings = [step for step in plan.steps if isinstance(step, Port) and _emitter(plan, step).operator is operator]
    sinks = {step.name: counting_sink(plan, step) for step in siblings}
    own = sinks.get(port.name)
    if own is not None:
        return measured.delivered.get(own, 0)
    others = [sinks.get(name) for name in operator.output_ports() if name != port.name]
    if total is None or port.name == UNACKED or None in others:
        return None
    return max(total - sum(measured.delivered.get(sink, 0) for sink in others if sink is not None), 0)


def _count_of(plan: Plan, step: Step, known: dict[str, int | None], measured: Measured) -> int | None:
    if isinstance(step, Apply) and not isinstance(step.operator, PASSES_ALL):
        sink = counting_sink(plan, step)
        return measured.tuples.get(step.operator.name) if sink is None else measured.delivered.get(sink, 0)
    if isinstance(step, Port):
        return _count_of_port(plan, step, known[step.input], measured)
    if isinstance(step, (Apply, Exchange, Gather, Merge)) or len(step.reads()) == 1:
        return _sum([known[name] for name in step.reads()])
    return measured.tuples.get(step.id, 0)
