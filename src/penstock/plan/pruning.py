"""Which columns of each source are read at all: the others need not be parsed."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.plan.graph import Apply, Exchange, Merge, OneInput, Plan, Read, Share, Step
from penstock.topology.model import Count, Dup, Explode, Filter, Select, Union, Uniq

Columns = frozenset[str] | None
"""Names in lower case; None: all of them, or it cannot be told."""


def columns_read(plan: Plan) -> dict[str, Columns]:
    """By source, the columns that anything downstream looks at."""
    needed: dict[str, Columns] = {}
    for step in reversed(plan.steps):
        wanted: Columns = frozenset()
        for reader in plan.readers(step.id):
            wanted = _both(wanted, _asked_of_input(reader, needed.get(reader.id, frozenset())))
        needed[step.id] = wanted
    return {step.source.name: needed[step.id] for step in plan.steps if isinstance(step, Read)}


def _asked_of_input(reader: Step, wanted: Columns) -> Columns:
    """What `reader` needs of what it reads, when `wanted` is needed of what it gives."""
    match reader:
        case Exchange(route=route):
            return _both(wanted, _lower(route.fields))
        case Share() | Merge():
            return wanted
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
        case OneInput():  # custom code and sinks see whole tuples
            return None
        case _:
            return None


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
