"""Joins and enrichments: their ports, conditions, times and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.topology.join import EVERY_PORT, Join
from penstock.topology.lineage import joins_of, lineage_of, lineage_of_streams, windows_of
from penstock.topology.model import Count, Operator, Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import Field, Schema
from penstock.topology.window import Window
from penstock.validation.comparisons import wrong_comparisons
from penstock.validation.expression_types import type_of
from penstock.validation.port_schemas import joined_schema, port_schemas
from penstock.validation.schemas import Schemas
from penstock.validation.sql import parse_expression
from penstock.validation.suggestions import not_found
from penstock.validation.types import family, find_column

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Ports = Mapping[str, Schema | None]


def check_joins(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Everything wrong with joins that is sure without asking Spark."""
    for operator in topology.operators:
        if isinstance(operator, Join):
            yield from dict.fromkeys((*_check_join(operator, schemas), *_check_chain(operator, topology)))
    yield from _check_after_left_joins(topology)


def _check_join(join: Join, schemas: Schemas) -> Iterator[Problem]:
    ports = port_schemas(join, schemas)
    if len(ports) != 2:
        yield _problem(join, f"a join has two ports, and this one has {len(ports) or 'none'}",
                       "write for example `from: {orders: orders, payments: payments}`")
        return
    yield from _check_settings(join)
    yield from _check_times(join, ports)
    yield from _check_condition(join, ports)
    joined = joined_schema(join, schemas)
    names = [name.lower() for name in joined.names] if joined else []
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield _problem(join, f"its result would have two columns '{name}'", "rename one with a select before it")


def _check_settings(join: Join) -> Iterator[Problem]:
    if join.within is None:
        yield _problem(join, "how long a tuple waits for its partner is missing", "add for example `within: 1 hour`")
    elif not 0 <= join.within <= _LONGEST:
        yield _problem(join, f"within {join.within:g} seconds is impossible", f"give at most {_LONGEST} seconds")
    if not 0 <= join.lateness <= _LONGEST:
        yield _problem(join, f"lateness {join.lateness:g} seconds is impossible", f"give at most {_LONGEST} seconds")
    if join.lateness and not join.on:
        yield _problem(join, "lateness has no meaning without `on`: no tuple is behind the time of its own epoch",
                       "remove it, or say with `on` where a tuple's time stands")
    if join.route is not None:
        yield _problem(join, "a join divides its tuples by the columns that must be equal",
                       "leave the route out; parallelism says how many instances there are")


_LONGEST = 10 * 366 * 86400


def _check_times(join: Join, ports: Ports) -> Iterator[Problem]:
    for port in dict(join.on):
        if port != EVERY_PORT and port not in ports:
            yield not_found(join.where, f"operator '{join.name}': on: no port '{port}'", port, ports)
    for port, schema in ports.items() if join.on else ():
        name = join.time_column(port)
        if name is None:
            yield _problem(join, f"on: the column with the time of port '{port}' is missing",
                           f"write for example `on: {{{', '.join(f'{each}: at' for each in ports)}}}`")
        elif schema is not None:
            column = find_column(schema, name)
            if column is None:
                yield not_found(join.where, f"operator '{join.name}': on: port '{port}' has no column '{name}'", name,
                                schema.names, "it has")
            elif family(column.type) not in ("time", "unknown"):
                yield _problem(join, f"on: '{name}' of port '{port}' is {column.type}, not a time",
                               f"make it one with a select before it: cast({name} as timestamp) as {name}")


def _check_chain(join: Join, topology: Topology) -> Iterator[Problem]:
    """A join of what windows and other joins give: it must go by a time that is in their tuples."""
    for port, refs in join.by_port().items():
        lineage = lineage_of_streams(topology, refs)
        changing = next((window for window in lineage.windows if not window.closes), None)
        before = ", ".join(f"'{node.name}'" for node in (*lineage.windows, *lineage.joins))
        if changing is not None:
            yield _problem(join, f"'{changing.name}' gives a window again whenever it has changed, and each of them "
                                 "would be joined", f"remove `emit: changes` from '{changing.name}'")
        elif lineage.watched and lineage.bare:
            yield _problem(join, f"port '{port}' has tuples of {before} together with tuples that have passed neither "
                                 "a window nor a join", "put these on a port of their own")
        elif lineage.watched and not join.on:
            yield _problem(join, f"port '{port}' has tuples of {before}, which may be of an earlier epoch",
                           "say with `on` in which column their time stands")


def _check_after_left_joins(topology: Topology) -> Iterator[Problem]:
    """What cannot stand in one topology with a left join, or behind one."""
    for window in windows_of(topology):
        if window.on is None and lineage_of(topology, window).joins:
            yield _problem(window, "it reads the tuples of a join, which may be of an earlier epoch",
                           "say with `on` in which column their time stands")
    left = next((join for join in joins_of(topology) if join.keeps_left), None)
    if left is None:
        return
    for operator in topology.operators:
        changes = isinstance(operator, Count) or (isinstance(operator, Window) and not operator.closes)
        if changes:
            what = "a running count changes" if isinstance(operator, Count) else "its windows change"
            yield _problem(operator, f"{what} all the time, and this topology emits only what is final, because the "
                                     f"left join '{left.name}' emits a tuple alone when its time is over",
                           "make that join `kind: inner`, or use two topologies")


def _check_condition(join: Join, ports: Ports) -> Iterator[Problem]:
    text = join.condition or ""
    if not text.strip():
        yield _problem(join, "join needs a condition", f"write for example `join: \"{_example(ports)}\"`")
        return
    parsed = parse_expression(text)
    tree = parsed.tree
    if tree is None:
        yield _problem(join, f"'{text}' is not a SQL expression: {parsed.error}")
        return
    if isinstance(tree, exp.Alias):
        yield _problem(join, f"a condition takes no name: '{text}'", f"remove '{tree.alias}'")
        return
    if tree.find(exp.Select, exp.Window, exp.AggFunc):
        yield _problem(join, f"'{text}' looks at more than two tuples", "compare columns of both ports only")
        return
    problems = list(_wrong_columns(join, tree, ports))
    yield from problems
    if problems:
        return
    whole = _as_one(ports)
    for message, hint in wrong_comparisons(tree, whole):
        yield _problem(join, message, hint)
    type_ = type_of(tree, whole)
    if family(type_) not in ("boolean", "unknown"):
        yield _problem(join, f"the condition '{text}' is {type_}, not true or false", "compare it with something")
    elif not any(_equates(part, ports) for part in _conjuncts(tree)):
        yield _problem(join, f"'{text}' does not say which column of one port equals which of the other",
                       f"write for example {_example(ports)}, and further conditions after `and`")


def _wrong_columns(join: Join, tree: Expr, ports: Ports) -> Iterator[Problem]:
    for column in tree.find_all(exp.Column):
        port, *names = (part.name for part in column.parts)
        if not names:
            holders = [each for each, schema in ports.items() if schema and find_column(schema, port)]
            hint = f"write {' or '.join(f'{each}.{port}' for each in holders or ports)}"
            yield _problem(join, f"'{port}' does not say of which port it is", hint)
        elif port not in ports:
            yield not_found(join.where, f"operator '{join.name}': no port '{port}'", port, ports, "its ports are")
        elif (schema := ports[port]) is not None and find_column(schema, names[0]) is None:
            message = f"operator '{join.name}': port '{port}' has no column '{names[0]}'"
            yield not_found(join.where, message, names[0], schema.names, "it has")


def _as_one(ports: Ports) -> Schema | None:
    """Both ports as one tuple in which each port is a struct: so that `orders.id` has the type it has."""
    if None in ports.values():
        return None
    fields = {port: ",".join(f"{item.name}:{item.type}" for item in schema.fields)
              for port, schema in ports.items() if schema is not None}
    return Schema(tuple(Field(port, f"struct<{inner}>") for port, inner in fields.items()))


def _conjuncts(tree: Expr) -> list[Expr]:
    if isinstance(tree, exp.Paren):
        return _conjuncts(tree.this)
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    return [tree]


def _equates(part: Expr, ports: Ports) -> bool:
    """Whether something of one port must equal something of the other."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [{column.parts[0].name for column in side.find_all(exp.Column)} for side in (part.this, part.expression)]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1] and sides[0] | sides[1] == set(ports)


def _example(ports: Ports) -> str:
    first, second = list(ports)[:2]
    return f"{first}.id = {second}.{first.rstrip('s')}_id"


def _problem(operator: Operator, message: str, hint: str = "") -> Problem:
    return Problem(operator.where, f"operator '{operator.name}': {message}", hint)
