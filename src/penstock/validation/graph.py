"""The shape of a topology: what reads what, loops, loose ends."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.topology.acking import acks_itself
from penstock.topology.model import DEFAULT_PORT, Operator, Sink, Source, StreamRef, Topology
from penstock.topology.problems import Problem, suggest
from penstock.validation.names import role_of
from penstock.validation.suggestions import not_found


def check_graph(topology: Topology) -> Iterator[Problem]:
    """Streams that do not exist, loops, streams nobody reads, and a topology without ends."""
    if not topology.sources:
        yield Problem(topology.where, f"topology '{topology.name}' has no sources", "add at least one source")
    if not topology.sinks:
        yield Problem(topology.where, f"topology '{topology.name}' has no sinks, so its results go nowhere",
                      "add at least one sink, for example a console")
    yield from _unresolved_inputs(topology)
    yield from _cycles(topology)
    if topology.sinks:
        yield from _unused_streams(topology)


def operators_in_order(topology: Topology) -> list[Operator]:
    """The operators, each after those it reads; those in a loop, or behind one, are left out."""
    done = {source.name for source in topology.sources}
    operators = {op.name for op in topology.operators}
    waiting = list(topology.operators)
    ordered: list[Operator] = []
    while True:
        ready = [op for op in waiting
                 if all(ref.node in done or ref.node not in operators for ref in op.inputs)]
        if not ready:
            return ordered
        ordered.extend(ready)
        done.update(op.name for op in ready)
        waiting = [op for op in waiting if op not in ready]


def readers_of(topology: Topology) -> tuple[Operator | Sink, ...]:
    """Everything that reads a stream."""
    return (*topology.operators, *topology.sinks)


def inputs_of(node: Operator | Sink) -> tuple[StreamRef, ...]:
    return node.inputs if isinstance(node, Operator) else (node.input,)


def _ports_of(node: Source | Operator) -> tuple[str, ...]:
    return node.output_ports() if isinstance(node, Operator) else (DEFAULT_PORT,)


def _unresolved_inputs(topology: Topology) -> Iterator[Problem]:
    for reader in readers_of(topology):
        subject = f"{role_of(reader)} '{reader.name}'"
        inputs = inputs_of(reader)
        if not inputs:
            yield Problem(reader.where, f"{subject} reads nothing", "say which stream with `from`")
        for ref in dict.fromkeys(inputs):
            # Named ports may read the same stream: a join of a stream with itself.
            if inputs.count(ref) > 1 and not (isinstance(reader, Operator) and reader.input_ports):
                yield Problem(reader.where, f"{subject} reads '{ref}' twice", "name every stream once")
            node = topology.node(ref.node)
            if not ref.node:  # it could not be read, and the reader has said so
                continue
            if node is None:
                yield _unknown_stream(topology, reader, ref)
            elif ref.port not in _ports_of(node):
                yield _wrong_port(subject, reader, ref, node)


def _unknown_stream(topology: Topology, reader: Operator | Sink, ref: StreamRef) -> Problem:
    subject = f"{role_of(reader)} '{reader.name}'"
    names = _stream_names(topology, reader)
    if any(sink.name == ref.node for sink in topology.sinks):
        return Problem(reader.where, f"{subject} reads '{ref.node}', which is a sink",
                       "read what that sink reads")
    return not_found(reader.where, f"{subject}: no stream '{ref.node}'", ref.node, names)


def _stream_names(topology: Topology, reader: Operator | Sink) -> list[str]:
    names = (*(source.name for source in topology.sources), *(op.name for op in topology.operators))
    return [name for name in names if isinstance(reader, Sink) or name != reader.name]


def _wrong_port(subject: str, reader: Operator | Sink, ref: StreamRef, node: Source | Operator) -> Problem:
    ports = [port for port in _ports_of(node) if port]
    written = [str(StreamRef(ref.node, port)) for port in ports]
    if not ports:
        return Problem(reader.where, f"{subject}: '{ref.node}' has no port '{ref.port}', only one output",
                       f"read '{ref.node}'")
    if not ref.port:
        return Problem(reader.where, f"{subject}: '{ref.node}' has named ports: say which to read",
                       f"write {' or '.join(written)}")
    message = f"{subject}: '{ref.node}' has no port '{ref.port}'"
    return not_found(reader.where, message, ref.port, ports, "it has")


def _cycles(topology: Topology) -> Iterator[Problem]:
    """One problem for every loop, naming the whole way round."""
    readers: dict[str, list[str]] = {}
    for op in topology.operators:
        for ref in op.inputs:
            readers.setdefault(ref.node, []).append(op.name)
    reported: set[str] = set()
    for op in topology.operators:
        if op.name in reported:
            continue
        way = _way_back(op.name, readers)
        if way:
            reported.update(way)
            yield Problem(op.where, f"a cycle: {' → '.join(way)}",
                          "a stream cannot flow back to where it came from")


def _way_back(start: str, readers: dict[str, list[str]]) -> list[str]:
    """The shortest way from `start` to itself; empty when there is none."""
    ways, seen = [[start]], {start}
    for way in ways:
        for reader in readers.get(way[-1], []):
            if reader == start:
                return [*way, start]
            if reader not in seen:
                seen.add(reader)
                ways.append([*way, reader])
    return []


def _unused_streams(topology: Topology) -> Iterator[Problem]:
    """Warnings for streams that nobody reads.

    Never errors: while a topology is being written, and in DADSTORM files, loose ends are normal, and
    they do no harm. What does is a topology without any sink, and that is an error. A stream that was
    meant by a misspelt or portless `from` is not reported a second time. A bolt that acks by itself is run even
    if nobody reads it.
    """
    meant = _meant_by_wrong_references(topology)
    for ref in dict.fromkeys(topology.streams()):
        node = topology.node(ref.node)
        if node is None or topology.consumers(ref) or ref.node in meant:
            continue
        if isinstance(node, Operator) and acks_itself(node, topology):
            continue
        subject = f"{role_of(node)} '{ref.node}'"
        unread = f"port '{ref.port}' of {subject}" if ref.port else subject
        yield Problem(node.where, f"nobody reads {unread}", "read it in a sink, or remove it", "warning")


def _meant_by_wrong_references(topology: Topology) -> set[str]:
    meant: set[str] = set()
    for reader in readers_of(topology):
        for ref in inputs_of(reader):
            node = topology.node(ref.node)
            if node is None:
                near = suggest(ref.node, _stream_names(topology, reader))
                meant.update(name for name in _stream_names(topology, reader) if f"'{name}'" in near)
            elif ref.port not in _ports_of(node):
                meant.add(ref.node)
    return meant
