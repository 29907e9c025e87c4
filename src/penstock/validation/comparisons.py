"""Comparisons that can only fail: a number with a word, a truth value with a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.topology.schema import Schema
from penstock.validation.expression_types import type_of
from penstock.validation.sql import show
from penstock.validation.types import comparable, family, literal_fits

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)


def wrong_comparisons(tree: Expr, schema: Schema | None) -> Iterator[tuple[str, str]]:
    """What is compared in vain within an expression: a message and a hint for each.

    Only where both types are sure, and Spark in ANSI mode would refuse the comparison or fail at the
    first tuple that does not happen to fit.
    """
    for node in tree.walk():
        for one, other in _compared(node):
            problem = _compare(one, other, schema)
            if problem:
                yield problem
                break
        if isinstance(node, exp.And | exp.Or | exp.Not):
            yield from _not_conditions(node, schema)


def _compared(node: Expr) -> Iterator[tuple[Expr, Expr]]:
    if isinstance(node, _COMPARISONS):
        yield node.this, node.expression
    elif isinstance(node, exp.In):
        for member in node.expressions:
            yield node.this, member
    elif isinstance(node, exp.Between):
        yield node.this, node.args["low"]
        yield node.this, node.args["high"]


def _compare(one: Expr, other: Expr, schema: Schema | None) -> tuple[str, str] | None:
    left, right = type_of(one, schema), type_of(other, schema)
    for literal, column, type_ in ((other, one, left), (one, other, right)):
        if isinstance(literal, exp.Literal) and literal.is_string:
            if literal_fits(literal.this, type_):
                return None
            return (f"{show(column)} is {type_} and cannot be compared with '{literal.this}'",
                    _literal_hint(type_))
    if comparable(left, right):
        return None
    return (f"{show(one)} is {left} and cannot be compared with {show(other)}, which is {right}",
            _hint(one, left, other, right))


def _literal_hint(type_: str) -> str:
    return {"number": "compare it with a number", "boolean": "compare it with true or false",
            "time": "compare it with a date such as '2024-01-31'"}.get(family(type_), "")


def _hint(one: Expr, left: str, other: Expr, right: str) -> str:
    if {family(left), family(right)} != {"text", "number"}:
        return ""
    text, number = (one, other) if family(left) == "text" else (other, one)
    if isinstance(number, exp.Literal):
        return f"write '{number.this}' in quotes, or cast({show(text)} as int)"
    return f"write cast({show(text)} as int)"


def _not_conditions(node: Expr, schema: Schema | None) -> Iterator[tuple[str, str]]:
    for operand in (node.this, node.args.get("expression")):
        if operand is not None and family(type_of(operand, schema)) == "number":
            word = type(node).__name__.lower()
            yield f"'{word}' needs conditions, and {show(operand)} is a number", "compare it with something"
