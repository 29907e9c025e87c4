"""Which columns may differ in their last digits from run to run: sums of fractions, which are added in no fixed order,
and what is made of them."""

from __future__ import annotations

from penstock.plan.graph import Apply, Port, Step
from penstock.plan.pruning import mentioned
from penstock.topology.aggregates import parse_aggregate
from penstock.topology.join import Join
from penstock.topology.model import Custom, Explode, Select
from penstock.topology.window import Window

_ADDING = frozenset({"sum", "avg", "stddev"})


def may_be_rounded(step: Step, column: str, given: frozenset[str]) -> bool:
    """Whether that column, of what a step gives, may differ so; `given` are those columns of what it reads that may.

    The caller asks only about columns with fractions in them, and about texts. Custom code is thought to give the same
    for the same tuples, to the last digit, and that is what its digest is for; of tuples that differ it gives others.
    """
    match step:
        case Apply(operator=Window() as window) if window.code is None:
            return _of_window(window, column, given)
        case Apply(operator=Custom() | Window()) | Port():
            return bool(given)
        case Apply(operator=Select(columns=columns)):
            return bool(given) and _of_select(columns, column, given)
        case Apply(operator=Explode(alias=alias, expression=expression)) if _same(alias, column):
            return bool(given) and _mention([expression], given)
        case Apply(operator=Join(input_ports=ports)):
            return any(_is_among(column.removeprefix(f"{port}_"), given) for port in ports) or _is_among(column, given)
        case _:
            return _is_among(column, given)


def _of_window(window: Window, column: str, given: frozenset[str]) -> bool:
    for aggregate in map(parse_aggregate, window.compute):
        if _same(aggregate.name, column):
            if aggregate.function in _ADDING:
                return True
            # What `top` keeps is whole tuples.
            whole = aggregate.function == "top"
            return bool(given) and (whole or _mention([aggregate.value or ""], given))
    return _is_among(column, given)


def _of_select(columns: tuple[str, ...], column: str, given: frozenset[str]) -> bool:
    from penstock.validation.sql import parse_expression

    for text in columns:
        tree = parse_expression(text).tree
        if tree is not None and _same(tree.alias_or_name, column):
            return _mention([text], given)
    return _is_among(column, given)


def _mention(expressions: list[str], given: frozenset[str]) -> bool:
    names = mentioned(expressions)
    return names is None or any(_is_among(name, given) for name in names)


def _is_among(column: str, given: frozenset[str]) -> bool:
    return any(_same(column, name) for name in given)


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()
