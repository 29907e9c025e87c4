"""Where an operator's tuples are counted: as few places as possible, since each costs time in every epoch."""

from __future__ import annotations

from penstock.plan.graph import UNACKED, Apply, Exchange, Gather, Merge, Plan, Port, Share, Step, Write
from penstock.topology.model import Dup, RouteKind, Select, Union

UNNAMED_PORT = "default"
"""What the port without a name is called where others have one."""

PASSES_ALL = (Select, Dup, Union)
"""Operators that give one tuple for each they take: their count follows from their inputs'."""


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


def derive_counts(plan: Plan, measured: dict[str, int], at_sinks: dict[str, int]) -> dict[str, int | None]:
    """The tuples of every operator: measured, or told by its sink, or by its inputs; None where unknown.

    `measured` holds the sources and those of `counts_needed` that have been counted yet. An operator that a
    rewrite took away, such as a filter merged into the next, is unknown.
    """
    by_step = _counts_by_step(plan, measured, at_sinks)
    applied = {step.operator.name: by_step[step.id] for step in plan.steps if isinstance(step, Apply)}
    return {operator.name: applied.get(operator.name) for operator in plan.topology.operators}


def derive_port_counts(
    plan: Plan, measured: dict[str, int], at_sinks: dict[str, int]
) -> dict[str, dict[str, int]]:
    """By operator, the tuples of its named output ports; those that are unknown are left out.

    An operator is counted as a whole. What a port gives is known where it all reaches one sink, or where that is so of
    all other ports.
    """
    by_step = _counts_by_step(plan, measured, at_sinks)
    found: dict[str, dict[str, int]] = {operator.name: {} for operator in plan.topology.operators}
    for step in plan.steps:
        number = by_step[step.id]
        if isinstance(step, Port) and step.name != UNACKED and number is not None:
            found[_emitter(plan, step).operator.name][step.name or UNNAMED_PORT] = number
    return found


def _counts_by_step(plan: Plan, measured: dict[str, int], at_sinks: dict[str, int]) -> dict[str, int | None]:
    by_step: dict[str, int | None] = {}
    for step in plan.steps:
        by_step[step.id] = _count_of(plan, step, by_step, measured, at_sinks)
    return by_step


def _emitter(plan: Plan, port: Port) -> Apply:
    """The operator of a port."""
    step = plan.step(port.input)
    while isinstance(step, Share):
        step = plan.step(step.input)
    assert isinstance(step, Apply), "only operators have ports"
    return step


def _count_of_port(plan: Plan, port: Port, total: int | None, at_sinks: dict[str, int]) -> int | None:
    """Told by its sink, or what the sinks of all other ports leave of the total."""
    operator = _emitter(plan, port).operator
    siblings = [step for step in plan.steps if isinstance(step, Port) and _emitter(plan, step).operator is operator]
    sinks = {step.name: counting_sink(plan, step) for step in siblings}
    own = sinks.get(port.name)
    if own is not None:
        return at_sinks.get(own, 0)
    others = [sinks.get(name) for name in operator.output_ports() if name != port.name]
    if total is None or port.name == UNACKED or None in others:
        return None
    return max(total - sum(at_sinks.get(sink, 0) for sink in others if sink is not None), 0)


def _count_of(
    plan: Plan, step: Step, known: dict[str, int | None], measured: dict[str, int], at_sinks: dict[str, int]
) -> int | None:
    if isinstance(step, Apply) and not isinstance(step.operator, PASSES_ALL):
        sink = counting_sink(plan, step)
        return measured.get(step.operator.name) if sink is None else at_sinks.get(sink, 0)
    if isinstance(step, Port):
        return _count_of_port(plan, step, known[step.input], at_sinks)
    if isinstance(step, (Apply, Exchange, Gather, Merge)) or len(step.reads()) == 1:
        inputs = [known[name] for name in step.reads()]
        return None if None in inputs else sum(number for number in inputs if number is not None)
    return measured.get(step.id, 0)
