"""Where replicas compare what they give, and who is named when they differ there. Each place costs time in every
epoch: only what may give something else for the same tuples is compared by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.plan.graph import Apply, Plan, Read, Write
from penstock.topology.aggregates import parse_aggregate
from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import Explode, Filter, Operator, Select, own_function
from penstock.topology.window import Window

_BY_CHANCE = frozenset({
    "uuid", "rand", "randn", "randstr", "uniform", "shuffle",
    "now", "current_timestamp", "localtimestamp", "current_date", "current_time",
    "spark_partition_id", "monotonically_increasing_id", "input_file_name", "input_file_block_start",
    "input_file_block_length", "reflect", "java_method", "try_reflect",
})  # fmt: skip
"""SQL functions that ask for the clock, for chance, or for where a tuple happens to be; a seed does not help `rand`,
for tuples come in no fixed order."""


def compared_steps(plan: Plan) -> dict[str, str]:
    """By step, in the order of the plan: who differs first if replicas differ there, and at no step before it.

    What a sink receives is always compared. Where one operator alone can be the reason, it is named; else the sink.
    """
    found: dict[str, str] = {}
    for step in plan.steps:
        if isinstance(step, Apply) and may_differ(step.operator) and not _only_a_sink_reads(plan, step):
            found[step.id] = step.operator.name
        elif isinstance(step, Write):
            suspects = _suspects(plan, step.input, found)
            found[step.id] = suspects.pop() if len(suspects) == 1 else f"sink {step.sink.name}"
    return found


def may_differ(operator: Operator) -> bool:
    """Whether an operator may give something else for the same tuples: it has code of its own, or SQL with chance."""
    return own_function(operator) is not None or any(_asks_for_chance(text) for text in _sql_of(operator))


def _only_a_sink_reads(plan: Plan, step: Apply) -> bool:
    """Whether what it gives is compared there, as it is."""
    readers = plan.readers(step.id)
    return len(readers) == 1 and isinstance(readers[0], Write)


def _suspects(plan: Plan, step_id: str, compared: Collection[str]) -> set[str]:
    """Who may be the first to differ in what a step gives, if all that was compared before it is the same."""
    step = plan.step(step_id)
    if step_id in compared:
        return set()
    if isinstance(step, Apply) and may_differ(step.operator):
        return {step.operator.name}
    if isinstance(step, Read):
        return {f"source {step.source.name}"}
    found = {name for before in step.reads() for name in _suspects(plan, before, compared)}
    # What remembers, or looks things up, may go on from something else; all others see nothing but their tuples.
    if isinstance(step, Apply) and (step.operator.stateful or isinstance(step.operator, Enrich)):
        found.add(step.operator.name)
    return found


def _sql_of(operator: Operator) -> Iterable[str]:
    match operator:
        case Filter(condition=condition) | Join(condition=condition):
            return (condition,)
        case Select(columns=columns):
            return columns
        case Explode(expression=expression):
            return (expression,)
        case Window(compute=compute):
            return [value for text in compute if (value := parse_aggregate(text).value) is not None]
        case _:
            return ()


def _asks_for_chance(text: str) -> bool:
    if not any(name in text.lower() for name in (*_BY_CHANCE, "random", "curdate", "unix_timestamp")):
        return False
    from sqlglot import exp

    from penstock.validation.sql import parse_expression

    tree = parse_expression(text).tree
    calls = [] if tree is None else tree.find_all(exp.Func)
    return any(name.lower() in _BY_CHANCE for call in calls
               for name in ([call.name] if isinstance(call, exp.Anonymous) else call.sql_names()))
