"""Windows: their times, what they compute, and which of them go together in one topology."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.aggregates import Aggregate, parse_aggregate
from penstock.topology.lineage import lineage_of, windows_of
from penstock.topology.model import DEFAULT_PORT, Count, Operator, Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import Field, Schema
from penstock.topology.window import WINDOW_END, Window, WindowKind
from penstock.validation.columns import unknown_column
from penstock.validation.expression_types import type_of
from penstock.validation.expressions import read_expression
from penstock.validation.keyed import NOT_FOR_KEYS
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.types import family, find_column
from penstock.validation.window_schemas import bounds_of

LONGEST = 10 * 366 * 86_400_000
"""The longest window in milliseconds; what is longer is a slip of the finger."""
MOST_TUPLES = 1_000_000
"""The most tuples of a window that counts them, all of which are remembered until it is full."""
MOST_OVERLAPPING = 1000
"""So many windows may share a tuple, which Spark copies into each of them."""

_OF_NUMBERS = ("sum", "avg", "stddev", "percentile")
_IN_ORDER = ("min", "max", "first", "last", "collect", "top")


def check_windows(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Everything wrong with windows that is sure without asking Spark."""
    for window in (operator for operator in topology.operators if isinstance(operator, Window)):
        read = input_schema(window, schemas)
        by_time = () if window.counts_tuples else (*_check_time(window, read), *_check_emission(window, read))
        yield from dict.fromkeys((
            *_check_span(window),
            *by_time,
            *(_check_counting(window, read) if window.counts_tuples else ()),
            *_check_compute(window, read),
            *_check_chain(window, topology),
        ))
    yield from _check_output_mode(topology)


def _check_span(window: Window) -> Iterator[Problem]:
    span = window.span
    if span.of_tuples and span.length > MOST_TUPLES:
        yield _problem(window, f"a window of {span} remembers so many tuples of each key",
                       f"give at most {MOST_TUPLES:,} tuples, or use a window of time")
    elif not span.of_tuples and span.length > LONGEST:
        yield _problem(window, f"a window of {span} is absurd", "give at most ten years")
    elif span.kind is WindowKind.SLIDING and span.length / span.step > MOST_OVERLAPPING:
        yield _problem(window, f"with {span} every tuple is in {span.length // span.step:,} windows",
                       f"take a longer step: at most {MOST_OVERLAPPING:,} windows may overlap")


def _check_counting(window: Window, read: Schema | None) -> Iterator[Problem]:
    """What has no meaning where tuples are counted."""
    given = {"on": window.on, "lateness": window.lateness, "late": window.late != "drop"}
    for name in (name for name, value in given.items() if value):
        yield _problem(window, f"`{name}` has no meaning for {window.span}, which counts tuples as they are read",
                       "remove it, or use a window of time")
    if window.emit != "close":
        yield _problem(window, f"{window.span} is emitted once, when it is full", f"remove `emit: {window.emit}`")
    for column in _not_for_keys(window, read):
        yield _problem(window, f"column '{column.name}' is {column.type}, which makes no key of tuples that are "
                               "counted", "cast it in a select before it, or choose another column")


def _not_for_keys(window: Window, read: Schema | None) -> list[Field]:
    """The columns of its key by which a worker in Python cannot tell keys apart."""
    columns = [find_column(read, name) for name in window.keys] if read is not None else []
    return [column for column in columns if column is not None and column.type.startswith(NOT_FOR_KEYS)]


def _check_time(window: Window, read: Schema | None) -> Iterator[Problem]:
    if not 0 <= window.lateness * 1000 <= LONGEST:
        yield _problem(window, f"lateness {window.lateness:g} seconds is impossible", "give seconds, at most ten years")
    if window.on is None:
        if window.lateness:
            yield _problem(window, "lateness has no meaning without `on`: no tuple is behind the time of its own epoch",
                           "remove it, or say with `on` where a tuple's time stands")
        return
    column = find_column(read, window.on) if read is not None else None
    if read is not None and column is None:
        yield unknown_column(window, window.on, read)
    elif column is not None and family(column.type) not in ("time", "unknown"):
        made = f"timestamp_millis({column.name})" if family(column.type) == "number" \
            else f"cast({column.name} as timestamp)"
        yield _problem(window, f"on: '{column.name}' is {column.type}, not a time",
                       f"make it one with a select before it: {made} as {column.name}")


def _check_emission(window: Window, read: Schema | None) -> Iterator[Problem]:
    if window.span.kind is WindowKind.SESSION and not window.closes:
        yield _problem(window, "a session can only be emitted when it is closed: tuples may still join two into one",
                       f"remove `emit: {window.emit}`, or use a tumbling window")
    for column in _not_for_keys(window, read) if window.every > 1 else ():
        yield _problem(window, f"column '{column.name}' is {column.type}, which makes no key of windows that wait for "
                               f"`emit: {window.emit}`", "cast it in a select before it, or write `emit: changes`")
    if window.buries and window.on is None:
        yield _problem(window, "`late: dead-letter` has no meaning without `on`: no tuple is behind the time of its "
                               "own epoch", "remove it, or say with `on` where a tuple's time stands")
    if window.late == "update" and window.closes:
        yield _problem(window, "a window that is emitted once, when it is closed, cannot be updated by late tuples",
                       "add `emit: changes`, or give more `lateness`")


def _check_compute(window: Window, read: Schema | None) -> Iterator[Problem]:
    if window.code is not None:
        yield from _check_function(window, read)
        return
    for name, value in (("emits", window.emits), ("with", window.arguments)):
        if value:
            yield _problem(window, f"`{name}` belongs to a function of your own, and there is none",
                           "remove it, or write `custom: module:function` instead of `compute`")
    if not window.compute:
        yield _problem(window, "what to compute of each window is missing", "add for example `compute: count() as n`")
    names = [*window.keys, *bounds_of(window)]
    for text in window.compute or ():
        try:
            aggregate = parse_aggregate(text)
        except TopologyError as error:
            yield _problem(window, str(error))
            continue
        names.append(aggregate.name)
        if aggregate.name.startswith("__"):
            yield _problem(window, f"column '{aggregate.name}': names that begin with '__' belong to Penstock",
                           "rename it")
        yield from _check_value(window, text, aggregate, read)
    lowered = [name.lower() for name in names]
    for name in dict.fromkeys(name for name in lowered if lowered.count(name) > 1):
        yield _problem(window, f"its result would have two columns '{name}'",
                       "rename one with `as`, or a key with a select before it")


def _check_function(window: Window, read: Schema | None) -> Iterator[Problem]:
    """A function in place of `compute`; whether it can be called is looked at with the other custom code."""
    if window.compute:
        yield _problem(window, "it has `compute` and `custom`: what comes out is what one of them gives",
                       "keep one; the function can compute all of it")
    for field in read.fields if read is not None else ():
        if any(kind in field.type for kind in ("map<", "variant")):
            yield _problem(window, f"column '{field.name}' is {field.type}, and with it tuples cannot be put in order",
                           f"make it text with a select before it: to_json({field.name}) as {field.name}")
    if window.emits and [port for port, _ in window.emits] != [DEFAULT_PORT]:
        yield _problem(window, "its function has one output, and `emits` names ports",
                       "write one schema: `emits: \"user string, total double\"`")


def _check_value(window: Window, text: str, aggregate: Aggregate, read: Schema | None) -> Iterator[Problem]:
    if aggregate.value is None:
        return
    tree, problems = read_expression(window, aggregate.value, read)
    yield from problems
    if tree is None or problems:
        return
    type_ = type_of(tree, read)
    if aggregate.function in _OF_NUMBERS and family(type_) not in ("number", "unknown"):
        yield _problem(window, f"'{text}': {aggregate.function} needs numbers, and '{aggregate.value}' is {type_}")
    elif aggregate.function in _IN_ORDER and family(type_) == "map":
        yield _problem(window, f"'{text}': {aggregate.function} needs values that have an order, and maps have none")


def _check_chain(window: Window, topology: Topology) -> Iterator[Problem]:
    """A window over windows: it must go by their ends, and they must be closed."""
    lineage = lineage_of(topology, window)
    if window.counts_tuples:
        return
    if not lineage.windows:
        if window.buries and lineage.joins:
            yield _problem(window, f"it reads join '{lineage.joins[0].name}', and what a join lets through is never "
                                   "late", "remove `late: dead-letter`")
        return
    names = ", ".join(f"'{before.name}'" for before in lineage.windows)
    changing = next((before for before in lineage.windows if not before.closes), None)
    if changing is not None:
        yield _problem(window, f"'{changing.name}' gives a window again whenever it has changed: a window over these "
                               "would count each of them several times",
                       f"remove `emit: {changing.emit}` from '{changing.name}'")
    elif lineage.bare or lineage.joins:
        yield _problem(window, f"it reads tuples of {names} together with tuples that have passed no window",
                       "put these through a window of their own first")
    elif window.on is None or window.on.lower() != WINDOW_END:
        yield _problem(window, f"it reads {names}, so the time of its tuples is the end of their window",
                       f"write `on: {WINDOW_END}`")
    elif window.lateness:
        yield _problem(window, f"it reads {names}, which has waited for late tuples already", "remove `lateness`")
    elif window.buries:
        yield _problem(window, f"it reads {names}, and of these none is late",
                       f"give `late: dead-letter` to {names}")


def _check_output_mode(topology: Topology) -> Iterator[Problem]:
    """A query emits what is final, or what has changed: not some of it so and some of it otherwise."""
    windows = windows_of(topology)
    closing = next((window for window in windows if window.closes), None)
    if closing is None:
        return
    for window in windows:
        if not window.closes:
            yield _problem(window, f"one topology cannot emit windows at their close, as '{closing.name}' does, and "
                                   "also whenever they change", "use the same `emit` for all, or two topologies")
    for operator in topology.operators:
        if isinstance(operator, Count):
            yield _problem(operator, "a running count changes all the time, and this topology emits only what is "
                                     f"final, because window '{closing.name}' is emitted at its close",
                           f"give '{closing.name}' `emit: changes`, or move the count to a topology of its own")


def _problem(operator: Operator, message: str, hint: str = "") -> Problem:
    return Problem(operator.where, f"operator '{operator.name}': {message}", hint)
