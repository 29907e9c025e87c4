"""DADSTORM operators turned into the model's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from penstock.topology.dadstorm.operators import Declaration
from penstock.topology.dadstorm.streams import Columns, Wiring
from penstock.topology.model import (
    DEFAULT_PORT,
    Count,
    Custom,
    Dup,
    Filter,
    FrozenOptions,
    Operator,
    Route,
    RouteKind,
    Select,
    Sink,
    StreamRef,
    Uniq,
)
from penstock.topology.problems import Problem
from penstock.topology.schema import Field, Schema

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")


def lower(
    wiring: Wiring, columns: Columns, choose_name: Callable[[str], str]
) -> tuple[tuple[Operator, ...], tuple[Sink, ...], list[Problem]]:
    """The operators and sinks of a wiring, and what is wrong or worth saying.

    `choose_name` gives a free name near the one wished for.
    """
    problems = [problem for name in wiring.operators for problem in _check_fields(name, wiring, columns)]
    if problems:
        return (), (), problems
    # All keyed state of a topology is divided alike, so UNIQ operators share the largest rep_fact among them.
    keyed = max((one.rep_fact for one in wiring.operators.values() if one.kind == "UNIQ"), default=1)
    operators: list[Operator] = []
    for name, declaration in wiring.operators.items():
        problems += _remark_on_lengths(name, wiring, columns)
        inputs, adapters = _merge_inputs(name, wiring, columns, choose_name)
        bare = _lower_one(name, declaration, columns)
        instances = keyed if isinstance(bare, Uniq) else declaration.rep_fact
        if bare.route == Route(RouteKind.GLOBAL):
            # The primary does all the work; DADSTORM's other replicas only stand by.
            instances = 1
        operators += [*adapters, replace(bare, inputs=inputs, parallelism=instances)]
    sinks = tuple(
        Sink(choose_name(f"{name}-out"), StreamRef(name), "console", FrozenOptions({"console": None}),
             where=declaration.where)
        for name, declaration in wiring.operators.items() if not wiring.readers(name))
    return tuple(operators), sinks, problems


def _check_fields(name: str, wiring: Wiring, columns: Columns) -> list[Problem]:
    operator, entering = wiring.operators[name], columns.entering[name]
    width = len(entering.fields)
    return [Problem(operator.where, f"operator {operator.id} looks at field {field}, but its tuples have "
                    f"{width} field{'s' if width > 1 else ''}", f"use 1 to {width}" if width > 1 else "use 1")
            for field in dict.fromkeys(operator.used_fields) if field > width]


def _remark_on_lengths(name: str, wiring: Wiring, columns: Columns) -> list[Problem]:
    operator = wiring.operators[name]
    widths = {read: len(columns.leaving[read].fields) for read in wiring.inputs[name]}
    if len(set(widths.values())) < 2:
        return []
    listed = ", ".join(f"{width} from {read}" for read, width in widths.items())
    return [Problem(operator.where, f"operator {operator.id} reads tuples of different lengths ({listed}); "
                    "the shorter ones get empty fields", severity="warning")]


def _merge_inputs(
    name: str, wiring: Wiring, columns: Columns, choose_name: Callable[[str], str]
) -> tuple[tuple[StreamRef, ...], list[Operator]]:
    """What the operator reads, and a Select for each stream that must first be fitted to the others."""
    target = columns.entering[name]
    adapters: dict[str, Operator] = {}
    for read in wiring.inputs[name]:
        given = columns.leaving[read]
        if given != target:
            adapters[read] = Select(choose_name(f"{read}-for-{name}"), (StreamRef(read),),
                                    columns=_fit(given, target), where=wiring.operators[name].where)
    names = (adapters[read].name if read in adapters else read for read in wiring.inputs[name])
    return tuple(StreamRef(name) for name in names), list(adapters.values())


def _fit(given: Schema, target: Schema) -> tuple[str, ...]:
    columns = [_quoted(name) for name in given.names]
    padded = [*columns, *["null"] * (len(target.fields) - len(columns))]
    return tuple(name if name == column else f"cast({column} as string) as {name}"
                 for column, name in zip(padded, target.names, strict=True))


def _lower_one(name: str, one: Declaration, columns: Columns) -> Operator:
    """The operator without its inputs and its parallelism."""
    entering = columns.entering[name]
    route = Route(one.routing, () if one.hash_field is None else (entering.names[one.hash_field - 1],))
    match one.kind:
        case "FILTER":
            condition = filter_condition(entering.fields[one.field - 1], *one.parameters[1:])
            return Filter(name, (), condition=condition, route=route, where=one.where)
        case "UNIQ":
            # Any other route would let two instances each call the same value new.
            key = (entering.names[one.field - 1],)
            return Uniq(name, (), keys=key, route=Route(RouteKind.HASH, key), where=one.where)
        case "COUNT":
            # One number over all tuples: there is nothing to divide.
            return Count(name, (), emit="each", route=Route(RouteKind.GLOBAL), where=one.where)
        case "DUP":
            return Dup(name, (), route=route, where=one.where)
        case "CUSTOM":
            module, class_name, method = one.parameters
            return Custom(name, (), code=f"{module}:{class_name}.{method}",
                          emits=((DEFAULT_PORT, columns.leaving[name]),), route=route, where=one.where)
        case _:
            raise AssertionError(f"no model for {one.kind}")


def filter_condition(field: Field, condition: str, value: str) -> str:
    """FILTER as SQL: as numbers where the field and `value` both are numbers, otherwise as text.

    Decimals, because doubles confuse long ids with their neighbours and take `nan` and `5d` for numbers.
    A number too long for them is compared as a double.
    """
    column, literal = _quoted(field.name), _text_literal(value)
    as_text = f"{column if field.type == 'string' else f'cast({column} as string)'} {condition} {literal}"
    if not _NUMBER.fullmatch(value) or math.isinf(float(value)):
        return as_text
    number, number_type = _number_literal(Decimal(value))
    if field.type != "string":
        return f"{column} {condition} {number}"
    return f"coalesce(try_cast({column} as {number_type}) {condition} {number}, {as_text})"


def _number_literal(number: Decimal) -> tuple[str, str]:
    plain = f"{number:f}"
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    whole, _, fraction = plain.lstrip("-").partition(".")
    if len(whole) <= 26 and len(fraction) <= 12:
        return plain, "decimal(38,12)"
    return f"{float(number)!r}D", "double"


def _text_literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quoted(column: str) -> str:
    # `count` is also a function; the quotes leave no doubt.
    return f"`{column}`" if column == "count" else column
