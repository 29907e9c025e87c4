"""SQL in filters, selects and explodes: syntax, columns, types, and what one tuple cannot answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.topology.model import Explode, Filter, Operator, Select, Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import Schema
from penstock.validation.columns import unknown_column
from penstock.validation.comparisons import wrong_comparisons
from penstock.validation.expression_types import type_of
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.sql import parse_expression, show
from penstock.validation.suggestions import not_found
from penstock.validation.types import family, find_column, struct_fields

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_RANKINGS = tuple(getattr(exp, name) for name in ("RowNumber", "Rank", "DenseRank") if hasattr(exp, name))
_GENERATORS = tuple(getattr(exp, name) for name in ("UDTF", "Explode", "Posexplode", "Inline", "Stack")
                    if hasattr(exp, name))
_UNITS = {"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"}


def check_expressions(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Everything wrong with the SQL of a topology that is sure without asking Spark.

    Functions that sqlglot does not know are let through: Spark has more of them.
    """
    for operator in topology.operators:
        read = input_schema(operator, schemas)
        match operator:
            case Filter():
                found = _check_filter(operator, read)
            case Select():
                found = _check_select(operator, read)
            case Explode():
                found = _check_explode(operator, read)
            case _:
                continue
        yield from dict.fromkeys(found)


def _check_filter(operator: Filter, read: Schema | None) -> Iterator[Problem]:
    condition = operator.condition or ""
    if not condition.strip():
        yield _problem(operator, "filter needs a condition", "write for example `filter: \"user = 'ann'\"`")
        return
    tree, problems = read_expression(operator, condition, read)
    yield from problems
    if tree is None or problems:
        return
    if isinstance(tree, exp.Alias):
        yield _problem(operator, f"a condition takes no name: '{condition}'", f"remove '{tree.alias}'")
        return
    type_ = type_of(tree, read)
    if family(type_) not in ("boolean", "unknown"):
        yield _problem(operator, f"the condition '{condition}' is {type_}, not true or false",
                       "compare it with something")


def _check_select(operator: Select, read: Schema | None) -> Iterator[Problem]:
    if not operator.columns:
        yield _problem(operator, "select needs at least one column",
                       "write for example `select: [user, id + 1 as next]`")
    names: list[str] = []
    for text in operator.columns or ():
        tree, problems = read_expression(operator, text, read)
        yield from problems
        if tree is None:
            continue
        if isinstance(tree, exp.Star):
            names.extend(read.names if read else ())
        elif isinstance(tree, exp.Alias | exp.Column):
            names.append(tree.alias_or_name)
        elif not problems:
            yield _problem(operator, f"the column '{text}' has no name", f"write '{text} as name'")
    for name in names:
        yield from _reserved(operator, name)
    lowered = [name.lower() for name in names]
    for name in dict.fromkeys(name for name in lowered if name != "*" and lowered.count(name) > 1):
        yield _problem(operator, f"select makes two columns '{name}'", "rename one with `as`")


def _check_explode(operator: Explode, read: Schema | None) -> Iterator[Problem]:
    text = operator.expression or ""
    if not text.strip():
        yield _problem(operator, "explode needs an array", "write for example `explode: split(line, ' ')`")
        return
    tree, problems = read_expression(operator, text, read)
    yield from problems
    if tree is not None and not problems:
        type_ = type_of(tree, read)
        if isinstance(tree, exp.Alias):
            yield _problem(operator, f"explode names its column with `as`, not within '{text}'",
                           f"write `explode: {show(tree.this)}` and `as: {tree.alias}`")
        elif family(type_) not in ("array", "unknown"):
            hint = f"use split({text}, ' ')" if type_ == "string" else "only arrays can be exploded"
            yield _problem(operator, f"explode needs an array, and '{text}' is {type_}", hint)
    yield from _reserved(operator, operator.alias)
    if read is not None and find_column(read, operator.alias) is not None:
        yield _problem(operator, f"explode adds a column '{operator.alias}', and there is one already",
                       "choose another name with `as`")


def _reserved(operator: Operator, name: str) -> Iterator[Problem]:
    if name.startswith("__"):
        message = f"column '{name}': names that begin with '__' belong to Penstock"
        yield _problem(operator, message, "rename it")


def read_expression(operator: Operator, text: str, read: Schema | None) -> tuple[Expr | None, list[Problem]]:
    """The tree of an expression, if it has one, and what is wrong with it wherever it stands."""
    parsed = parse_expression(text)
    if parsed.tree is None:
        return None, [_problem(operator, f"'{text}' is not a SQL expression: {parsed.error}")]
    beyond = list(_beyond_one_tuple(operator, parsed.tree))
    if beyond:
        return parsed.tree, beyond
    problems = list(dict.fromkeys(_unknown_columns(operator, parsed.tree, read)))
    problems += [_problem(operator, message, hint) for message, hint in wrong_comparisons(parsed.tree, read)]
    return parsed.tree, problems


def _beyond_one_tuple(operator: Operator, tree: Expr) -> Iterator[Problem]:
    if tree.find(exp.Select):
        yield _problem(operator, "queries within an expression are not possible", "use operators for them")
        return
    aggregate = tree.find(exp.Window, exp.AggFunc, *_RANKINGS)
    generator = tree.find(*_GENERATORS)
    if aggregate is not None:
        yield _problem(operator,
                       f"'{show(aggregate)}' looks at many tuples, and {operator.keyword} sees one at a time",
                       "to count tuples, use a count operator")
    elif generator is not None:
        own = isinstance(operator, Explode)
        yield _problem(operator, f"'{show(generator)}' makes many tuples of one",
                       f"write `explode: {show(generator.this)}`" if own else "use an explode operator")


def _unknown_columns(operator: Operator, tree: Expr, read: Schema | None) -> Iterator[Problem]:
    if read is None:
        return
    for column in tree.find_all(exp.Column):
        names = [part.name for part in column.parts if not isinstance(part, exp.Star)]
        if isinstance(column.parent, exp.Anonymous) and names[0].lower() in _UNITS:
            continue
        field = find_column(read, names[0])
        if field is None:
            yield unknown_column(operator, names[0], read)
        elif len(names) > 1:
            yield from _unknown_field(operator, field.type, names)


def _unknown_field(operator: Operator, type_: str, names: list[str]) -> Iterator[Problem]:
    """A field that a struct, or a plain column, surely does not have."""
    kind = family(type_)
    inner = struct_fields(type_)
    if kind in ("number", "text", "boolean", "time", "binary"):
        yield _problem(operator, f"'{names[0]}' is {type_} and has no field '{names[1]}'")
    elif inner is not None and find_column(inner, names[1]) is None:
        yield not_found(operator.where, f"operator '{operator.name}': '{names[0]}' has no field '{names[1]}'",
                        names[1], inner.names, "it has")


def _problem(operator: Operator, message: str, hint: str = "") -> Problem:
    return Problem(operator.where, f"operator '{operator.name}': {message}", hint)
