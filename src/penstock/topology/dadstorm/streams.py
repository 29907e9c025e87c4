"""The streams between DADSTORM operators: who reads whom, and which columns their tuples have.

A DADSTORM tuple is an ordered list of strings, so its columns are called f1, f2, … and a field number
finds its column by position. Only COUNT differs: it emits one `bigint` called `count`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from penstock.topology.dadstorm.operators import Declaration
from penstock.topology.model import Source
from penstock.topology.problems import Problem
from penstock.topology.schema import Field, Schema

COUNTED = Schema((Field("count", "bigint"),))
"""What COUNT emits."""


def string_columns(width: int) -> Schema:
    """The columns of tuples with `width` fields."""
    return Schema(tuple(Field(f"f{number}", "string") for number in range(1, width + 1)))


@dataclass(frozen=True)
class Wiring:
    """The operators, and for each the names of the nodes it reads."""

    operators: Mapping[str, Declaration]
    inputs: Mapping[str, tuple[str, ...]]

    def readers(self, name: str) -> list[str]:
        return [reader for reader, names in self.inputs.items() if name in names]

    def in_order(self) -> list[str]:
        """Every operator after those it reads; raises CycleError."""
        return [name for name in TopologicalSorter(self.inputs).static_order() if name in self.operators]


def find_cycle(wiring: Wiring) -> Problem | None:
    """A problem that shows a cycle, if there is one."""
    try:
        wiring.in_order()
    except CycleError as error:
        cycle: Sequence[str] = error.args[1]
        first = min(wiring.operators[name].where.line for name in cycle)
        turn = next(index for index, name in enumerate(cycle) if wiring.operators[name].where.line == first)
        shown = [*cycle[turn:-1], *cycle[:turn], cycle[turn]]
        where = wiring.operators[cycle[turn]].where
        return Problem(where, f"the operators form a cycle: {' → '.join(shown)}",
                       "a DADSTORM graph has none; let one of them read something else")
    return None


@dataclass(frozen=True)
class Columns:
    """The columns that enter and leave every operator, and those of every source."""

    entering: Mapping[str, Schema]
    leaving: Mapping[str, Schema]


def find_columns(wiring: Wiring, sources: Sequence[Source]) -> Columns:
    """The columns of all streams of an acyclic graph.

    DADSTORM does not say how many fields a CUSTOM operator emits. Enough are taken for every field number
    that is used after it, for tuples it is merged with, and one at least. The same goes for a source
    whose file has no tuples yet.
    """
    order = wiring.in_order()
    known = {source.name: len(source.schema.fields) if source.schema else None for source in sources}
    for name in order:
        operator = wiring.operators[name]
        widths = [width for read in wiring.inputs[name] if (width := known[read]) is not None]
        passed_on = max(widths, default=None) if operator.passes_on else None
        known[name] = 1 if operator.kind == "COUNT" else passed_on
    wanted = _wanted_widths(wiring, known, order)
    leaving = {source.name: source.schema or string_columns(wanted[source.name]) for source in sources}
    entering: dict[str, Schema] = {}
    for name in order:
        entering[name] = merge_columns([leaving[read] for read in wiring.inputs[name]])
        operator = wiring.operators[name]
        if operator.kind == "COUNT":
            leaving[name] = COUNTED
        else:
            leaving[name] = entering[name] if operator.passes_on else string_columns(wanted[name])
    return Columns(entering, leaving)


def merge_columns(streams: Sequence[Schema]) -> Schema:
    """The columns of several streams read as one: their own, or strings as wide as the widest."""
    if all(stream == streams[0] for stream in streams):
        return streams[0]
    return string_columns(max(len(stream.fields) for stream in streams))


def _wanted_widths(wiring: Wiring, known: Mapping[str, int | None], order: Sequence[str]) -> dict[str, int]:
    """For every node, how many fields those after it count on."""
    wanted: dict[str, int] = dict.fromkeys(known, 1)
    for name in reversed(order):
        operator = wiring.operators[name]
        fields = [*operator.used_fields, *([wanted[name]] if operator.passes_on else [])]
        fields += [width for read in wiring.inputs[name] if (width := known[read]) is not None]
        for read in wiring.inputs[name]:
            wanted[read] = max(wanted[read], *fields, 1)
    return wanted
