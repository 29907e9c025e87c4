"""The logical plan as frozen steps, made from a valid topology. Nothing here knows Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from penstock.errors import TopologyError
from penstock.topology.acking import acks_itself
from penstock.topology.join import Join
from penstock.topology.model import (
    DEFAULT_PORT,
    Count,
    Custom,
    Operator,
    Route,
    RouteKind,
    Sink,
    Source,
    StreamRef,
    Topology,
    Uniq,
)
from penstock.topology.window import Window

UNACKED = "not acked"
"""The hidden port on which a bolt that acks by itself gives the tuples that it has not acked. No user can write such a
name."""


@dataclass(frozen=True)
class Step:
    """One thing the plan does. `id` is unique in its plan, readable, and the same on every build."""

    id: str

    def reads(self) -> tuple[str, ...]:
        """The ids of the steps it reads, once for every time it reads them."""
        return ()

    def redirected(self, instead: Mapping[str, str]) -> Self:
        """The same step, reading `instead[id]` where it read `id`."""
        return self


@dataclass(frozen=True)
class Read(Step):
    """Read a source."""

    source: Source


@dataclass(frozen=True)
class Merge(Step):
    """Put the tuples of several streams together, in no order; a stream named twice counts twice."""

    inputs: tuple[str, ...]

    def reads(self) -> tuple[str, ...]:
        return self.inputs

    def redirected(self, instead: Mapping[str, str]) -> Self:
        return replace(self, inputs=tuple(instead.get(each, each) for each in self.inputs))


@dataclass(frozen=True)
class Gather(Step):
    """Bring the streams of an operator's input ports together, each tuple with its port; in no order."""

    inputs: tuple[str, ...]
    ports: tuple[str, ...]
    """The port of each input."""

    def reads(self) -> tuple[str, ...]:
        return self.inputs

    def redirected(self, instead: Mapping[str, str]) -> Self:
        return replace(self, inputs=tuple(instead.get(each, each) for each in self.inputs))


@dataclass(frozen=True)
class OneInput(Step):
    """A step that reads exactly one other."""

    input: str

    def reads(self) -> tuple[str, ...]:
        return (self.input,)

    def redirected(self, instead: Mapping[str, str]) -> Self:
        return replace(self, input=instead.get(self.input, self.input))


@dataclass(frozen=True)
class Exchange(OneInput):
    """Divide a stream over instances; with no parallelism given, over as many as the session has."""

    route: Route
    parallelism: int | None = None


@dataclass(frozen=True)
class Apply(OneInput):
    """Run an operator. Its own `inputs`, `route` and `parallelism` are already steps before this one."""

    operator: Operator


@dataclass(frozen=True)
class Port(OneInput):
    """Select the tuples that a custom operator emitted on one named port."""

    name: str


@dataclass(frozen=True)
class Share(OneInput):
    """A fan-out: `consumers` steps read this, and what lies before it is computed once for all of them."""

    consumers: int


@dataclass(frozen=True)
class Write(OneInput):
    """Hand a stream to a sink."""

    sink: Sink


@dataclass(frozen=True)
class Acker(Step):
    """Find the tuple trees that are not complete, from what each bolt that acks by itself has not acked."""

    inputs: tuple[str, ...]
    operators: tuple[str, ...]
    """The bolts' names, in the order of `inputs`."""

    def reads(self) -> tuple[str, ...]:
        return self.inputs

    def redirected(self, instead: Mapping[str, str]) -> Self:
        return replace(self, inputs=tuple(instead.get(each, each) for each in self.inputs))


@dataclass(frozen=True)
class Plan:
    """Steps in topological order: each comes after all that it reads. `notes` log the rewrites."""

    topology: Topology
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def _by_id(self) -> dict[str, Step]:
        return {step.id: step for step in self.steps}

    @cached_property
    def _readers(self) -> dict[str, tuple[Step, ...]]:
        readers: dict[str, list[Step]] = {step.id: [] for step in self.steps}
        for step in self.steps:
            for each in step.reads():
                readers[each].append(step)
        return {each: tuple(found) for each, found in readers.items()}

    @cached_property
    def self_acking(self) -> frozenset[str]:
        """The operators that ack their tuples themselves."""
        return frozenset(name for step in self.steps if isinstance(step, Acker) for name in step.operators)

    def step(self, step_id: str) -> Step:
        """The step of that id; KeyError when there is none."""
        return self._by_id[step_id]

    def readers(self, step_id: str) -> tuple[Step, ...]:
        """The steps that read it, in order; one that reads it twice is listed twice."""
        return self._readers[step_id]


def build_plan(topology: Topology) -> Plan:
    """The plan of a valid topology, as written and before any rewrite.

    Every stream with more than one reader passes through a Share. Raises TopologyError for a cycle, a
    stream that does not exist or a name given twice, which validation reports with more care.
    """
    builder = _Builder(topology)
    for source in topology.sources:
        builder.add_source(source)
    for operator in operators_in_order(topology):
        builder.add_operator(operator)
    for sink in topology.sinks:
        builder.add_sink(sink)
    builder.add_acker()
    return Plan(topology, tuple(builder.steps))


def reading_nodes(topology: Topology) -> tuple[Operator | Sink, ...]:
    """Everything that reads streams, in the order written."""
    return (*topology.operators, *topology.sinks)


def offering_nodes(topology: Topology) -> tuple[Source | Operator, ...]:
    """Everything that others can read, in the order written."""
    return (*topology.sources, *topology.operators)


def input_streams(node: Operator | Sink) -> tuple[StreamRef, ...]:
    """What an operator or a sink reads, in the order written."""
    return node.inputs if isinstance(node, Operator) else (node.input,)


def effective_route(operator: Operator) -> Route | None:
    """The route an operator asks for: its own, or what `parallelism` alone means.

    Tuples of one key must meet in one instance, so an operator with state divides by its keys; any
    other divides evenly.
    """
    if isinstance(operator, Join):  # Spark brings both sides together by the columns that must be equal
        return None
    if isinstance(operator, Custom) and operator.synchronous and operator.route is None:
        return Route(RouteKind.GLOBAL)
    if operator.route is not None or operator.parallelism is None:
        return operator.route
    return route_of_state(operator) or Route(RouteKind.SHUFFLE)


def route_of_state(operator: Operator) -> Route | None:
    """How an operator's state divides its input by itself; None when it holds no keyed state."""
    match operator:
        case Count(keys=()):
            return Route(RouteKind.GLOBAL)
        case Uniq(keys=keys) | Count(keys=keys) if keys:
            return Route(RouteKind.HASH, keys)
        case Window(keys=keys):
            return Route(RouteKind.HASH, keys)
        case Custom(key=key) if key:
            return Route(RouteKind.HASH, key)
        case _:
            return None


def operators_in_order(topology: Topology) -> tuple[Operator, ...]:
    """The operators so that each follows those it reads, otherwise in the order written.

    Raises TopologyError for a cycle, a stream that does not exist or a name given twice.
    """
    _check_names(topology)
    _check_streams(topology)
    placed = {source.name for source in topology.sources}
    waiting = list(topology.operators)
    ordered: list[Operator] = []
    while waiting:
        ready = next((op for op in waiting if all(ref.node in placed for ref in op.inputs)), None)
        if ready is None:
            names = ", ".join(f"'{op.name}'" for op in waiting)
            raise TopologyError(f"{_at(waiting[0])}operators {names} wait for each other or for a cycle; "
                                "let one of them read an earlier stream")
        waiting.remove(ready)
        placed.add(ready.name)
        ordered.append(ready)
    return tuple(ordered)


def _check_names(topology: Topology) -> None:
    groups: tuple[tuple[Source | Operator | Sink, ...], ...] = (offering_nodes(topology), topology.sinks)
    for group in groups:
        seen: set[str] = set()
        for node in group:
            if node.name in seen:
                raise TopologyError(f"{_at(node)}the name '{node.name}' is given twice; rename one of them")
            seen.add(node.name)


def _check_streams(topology: Topology) -> None:
    known = set(topology.streams())
    for node in reading_nodes(topology):
        if not input_streams(node):
            raise TopologyError(f"{_at(node)}'{node.name}' reads no stream; give it a 'from'")
        for ref in input_streams(node):
            if ref not in known:
                raise TopologyError(f"{_at(node)}'{node.name}' reads '{ref}', and there is no such stream; "
                                    f"there are {', '.join(str(each) for each in topology.streams())}")


def _at(node: Source | Operator | Sink) -> str:
    return f"{node.where}: " if str(node.where) else ""


class _Builder:
    """Adds the steps of one node after another; `_streams` knows which step offers each stream."""

    def __init__(self, topology: Topology) -> None:
        self.steps: list[Step] = []
        self._streams: dict[StreamRef, str] = {}
        self._readers = Counter(ref for node in reading_nodes(topology) for ref in input_streams(node))
        self._self_acking = tuple(op.name for op in topology.operators if acks_itself(op, topology))
        self._readers.update(StreamRef(name, UNACKED) for name in self._self_acking)
        # Nodes keep their own names, whatever the steps between them would like to be called.
        self._taken = {node.name for node in offering_nodes(topology)}
        self._sink_ids = {sink.name: self._fresh(sink.name) for sink in topology.sinks}

    def add_source(self, source: Source) -> None:
        self._add(Read(source.name, source))
        self._offer(source.name, (DEFAULT_PORT,))

    def add_operator(self, operator: Operator) -> None:
        current = self._gathered(operator) if operator.input_ports else self._merged(operator.name, operator.inputs)
        route = effective_route(operator)
        if route is not None:
            step_id = self._fresh(f"{operator.name}.route")
            current = self._add(Exchange(step_id, current, route, operator.parallelism))
        self._add(Apply(operator.name, current, operator))
        hidden = (UNACKED,) if operator.name in self._self_acking else ()
        self._offer(operator.name, (*operator.output_ports(), *hidden))

    def _gathered(self, operator: Operator) -> str:
        by_port = operator.by_port()
        inputs = tuple(self._merged(f"{operator.name}.{port}", refs) for port, refs in by_port.items())
        return self._add(Gather(self._fresh(f"{operator.name}.ports"), inputs, tuple(by_port)))

    def _merged(self, name: str, refs: tuple[StreamRef, ...]) -> str:
        inputs = tuple(self._streams[ref] for ref in refs)
        return inputs[0] if len(inputs) == 1 else self._add(Merge(self._fresh(f"{name}.merge"), inputs))

    def add_sink(self, sink: Sink) -> None:
        self._add(Write(self._sink_ids[sink.name], self._streams[sink.input], sink))

    def add_acker(self) -> None:
        if self._self_acking:
            inputs = tuple(self._streams[StreamRef(name, UNACKED)] for name in self._self_acking)
            self._add(Acker(self._fresh("acker"), inputs, self._self_acking))

    def _offer(self, name: str, ports: tuple[str, ...]) -> None:
        """Make a node's output readable: its ports, and a Share wherever there are several readers."""
        if ports == (DEFAULT_PORT,):
            self._streams[StreamRef(name)] = self._shared(name, self._readers[StreamRef(name)])
            return
        wanted = [port for port in ports if self._readers[StreamRef(name, port)]]
        tagged = self._shared(name, len(wanted))
        for port in wanted:
            selected = self._add(Port(self._fresh(f"{name}.{port or 'default'}"), tagged, port))
            ref = StreamRef(name, port)
            self._streams[ref] = self._shared(selected, self._readers[ref])

    def _shared(self, step_id: str, readers: int) -> str:
        return self._add(Share(self._fresh(f"{step_id}.share"), step_id, readers)) if readers > 1 else step_id

    def _add(self, step: Step) -> str:
        self.steps.append(step)
        return step.id

    def _fresh(self, wish: str) -> str:
        """An id nobody has: `wish`, or `wish~2` and so on when it is taken."""
        candidate, number = wish, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{wish}~{number}"
        self._taken.add(candidate)
        return candidate
