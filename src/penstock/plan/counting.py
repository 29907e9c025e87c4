"""Where an operator's tuples are counted: as few places as possible, since each costs time in every epoch."""

from __future__ import annotations

from penstock.plan.graph import Apply, Exchange, Gather, Merge, Plan, Step, Write
from penstock.topology.model import Dup, RouteKind, Select, Union

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
    by_step: dict[str, int | None] = {}
    for step in plan.steps:
        by_step[step.id] = _count_of(plan, step, by_step, measured, at_sinks)
    applied = {step.operator.name: by_step[step.id] for step in plan.steps if isinstance(step, Apply)}
    return {operator.name: applied.get(operator.name) for operator in plan.topology.operators}


def _count_of(
    plan: Plan, step: Step, known: dict[str, int | None], measured: dict[str, int], at_sinks: dict[str, int]
) -> int | None:
    if isinstance(step, Apply) and not isinstance(step.operator, PASSES_ALL):
        sink = counting_sink(plan, step)
        return measured.get(step.operator.name) if sink is None else at_sinks.get(sink, 0)
    if isinstance(step, (Apply, Exchange, Gather, Merge)) or len(step.reads()) == 1:
        inputs = [known[name] for name in step.reads()]
        return None if None in inputs else sum(number for number in inputs if number is not None)
    return measured.get(step.id, 0)
