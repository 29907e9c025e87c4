"""Which columns of each source are read at all: the others need not be parsed."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.plan.graph import Apply, Exchange, Gather, Merge, OneInput, Plan, Read, Share, Step
from penstock.topology.aggregates import parse_aggregate
from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import Count, Dup, Explode, Filter, Select, Union, Uniq
from penstock.topology.window import Window

Columns = frozenset[str] | None
"""Names in lower case; None: all of them, or it cannot be told."""


def columns_read(plan: Plan) -> dict[str, Columns]:
    """By source, the columns that anything downstream looks at."""
    needed = columns_needed(plan)
    return {step.source.name: needed[step.id] for step in plan.steps if isinstance(step, Read)}


def columns_needed(plan: Plan) -> dict[str, Columns]:
    """By step, the columns that anything downstream looks at."""
    needed: dict[str, Columns] = {}
    for step in reversed(plan.steps):
        wanted: Columns = frozenset()
        for reader in plan.readers(step.id):
            wanted = _both(wanted, _asked_of_input(reader, needed.get(reader.id, frozenset())))
        needed[step.id] = wanted
    return needed


def _asked_of_input(reader: Step, wanted: Columns) -> Columns:
    """What `reader` needs of what it reads, when `wanted` is needed of what it gives."""
    match reader:
        case Exchange(route=route):
            return _both(wanted, _lower(route.fields))
        case Share() | Merge() | Gather():
            return wanted
        case Apply(operator=Join() as join):
            return _asked_by_join(join, wanted)
        case Apply(operator=Enrich(keys=keys)):
            return _both(wanted, _lower(keys))
        case Apply(operator=Filter(condition=condition)):
            return _both(wanted, mentioned([condition]))
        case Apply(operator=Select(columns=columns)):
            return mentioned(columns)
        case Apply(operator=Explode(expression=expression, alias=alias)):
            kept = None if wanted is None else wanted - {alias.lower()}
            return _both(kept, mentioned([expression]))
        case Apply(operator=Dup() | Union()):
            return wanted
        case Apply(operator=Uniq(keys=keys)):
            return _both(wanted, _lower(keys))
        case Apply(operator=Count(keys=keys)):
            return _lower(keys)
        case Apply(operator=Window() as window):
            return asked_by_window(window)
        case OneInput():  # custom code and sinks see whole tuples
            return None
        case _:
            return None


def asked_by_window(window: Window) -> Columns:
    """The columns that a window looks at."""
    if window.code is not None:
        return None
    aggregates = [parse_aggregate(text) for text in window.compute]
    if any(each.function == "top" for each in aggregates):
        return None
    named = _lower((*window.keys, *((window.on,) if window.on else ())))
    return _both(named, mentioned(each.value for each in aggregates if each.value is not None))


def _asked_by_join(join: Join, wanted: Columns) -> Columns:
    """The columns needed of either port: a name that is on one only does no harm to the other."""
    if wanted is None:
        return None
    prefixes = [f"{port}_".lower() for port in join.input_ports]
    unprefixed = {name.removeprefix(prefix) for name in wanted for prefix in prefixes}
    times = _lower(column for _, column in join.on)
    return _both(wanted | unprefixed | times, mentioned([join.condition]))


def mentioned(expressions: Iterable[str]) -> Columns:
    """The columns that SQL expressions mention; None where that cannot be told."""
    from sqlglot import exp

    from penstock.validation.sql import parse_expression

    names: set[str] = set()
    for text in expressions:
        tree = parse_expression(text).tree
        if tree is None or tree.find(exp.Star) is not None:
            return None
        # Every identifier, so that both parts of `address.street` count, whichever of them is the column.
        names |= {found.name.lower() for found in tree.find_all(exp.Identifier)}
    return frozenset(names)


def _both(one: Columns, other: Columns) -> Columns:
    return None if one is None or other is None else one | other


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
