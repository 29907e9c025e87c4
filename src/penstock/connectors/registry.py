"""All connectors by the name users write, and the way from a model's source or sink to its connector."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from penstock.connectors.base import Place, SinkConnector, SourceConnector
from penstock.connectors.console import ConsoleSink
from penstock.connectors.file_sink import FileSink
from penstock.connectors.file_source import FileSource
from penstock.connectors.generator import GeneratorSource
from penstock.connectors.memory import MemorySink
from penstock.connectors.nexmark import NexmarkEvents
from penstock.connectors.rows import RowsSource
from penstock.connectors.spout import SpoutSource
from penstock.connectors.sql_sink import SqlSink
from penstock.errors import TopologyError
from penstock.topology.catalogue import REQUIRED, Catalogue, Kind, Option, Role, operator_kinds
from penstock.topology.code import load_user_object
from penstock.topology.model import Sink, Source, Topology
from penstock.topology.problems import Problem, suggest

Connector = TypeVar("Connector", SourceConnector, SinkConnector)

SOURCES: Mapping[str, type[SourceConnector]] = {
    source.describe.name: source for source in (FileSource, GeneratorSource, SpoutSource, RowsSource, NexmarkEvents)}

SINKS: Mapping[str, type[SinkConnector]] = {
    sink.describe.name: sink for sink in (FileSink, SqlSink, ConsoleSink, MemorySink)}

CUSTOM = "custom"
"""The kind of a user's own connector; it takes any option, and hands it to the class."""

CUSTOM_SOURCE = Kind(CUSTOM, "source", "Read tuples with your own connector class.", Option(
    CUSTOM, "code", "`module:Class` of a SourceConnector; it is given all other options.", REQUIRED))
CUSTOM_SINK = Kind(CUSTOM, "sink", "Write tuples with your own connector class.", Option(
    CUSTOM, "code", "`module:Class` of a SinkConnector; it is given all other options.", REQUIRED))


def catalogue() -> Catalogue:
    """Everything that can be written in a topology."""
    return Catalogue((
        *(source.describe for source in SOURCES.values()), CUSTOM_SOURCE,
        *operator_kinds(),
        *(sink.describe for sink in SINKS.values()), CUSTOM_SINK))


def source_connector(source: Source, place: Place) -> SourceConnector:
    """The connector of a source; raises TopologyError when its kind or an option makes no sense."""
    connector = _find("source", source.name, source.kind, source.options, place, SOURCES, SourceConnector)
    return connector.configure(place, _completed(connector, "source", source.name, source), source.schema)


def sink_connector(sink: Sink, place: Place) -> SinkConnector:
    """The connector of a sink; raises TopologyError when its kind or an option makes no sense."""
    connector = _find("sink", sink.name, sink.kind, sink.options, place, SINKS, SinkConnector)
    return connector.configure(place, _completed(connector, "sink", sink.name, sink))


def misconfigured(topology: Topology) -> Iterator[Problem]:
    """What the connectors themselves find wrong with their options. A user's own class is not asked before a run."""
    nodes: tuple[Source | Sink, ...] = (*topology.sources, *topology.sinks)
    for node in nodes:
        place = Place(topology.name, node.name, topology.folder.absolute())
        try:
            if node.kind in SOURCES and isinstance(node, Source):
                source_connector(node, place)
            elif node.kind in SINKS and isinstance(node, Sink):
                sink_connector(node, place)
        except TopologyError as error:
            yield Problem(node.where, str(error))


def _find(role: Role, name: str, kind: str, options: Mapping[str, Any], place: Place,
          known: Mapping[str, type[Connector]], contract: ABCMeta) -> type[Connector]:
    if kind in known:
        return known[kind]
    if kind == CUSTOM:
        own: type[Connector] = _user_connector(role, name, options.get(CUSTOM), place, contract)
        return own
    hint = suggest(kind, known) or f"there are {', '.join((*known, CUSTOM))}"
    raise TopologyError(f"{role} '{name}': no kind of {role} '{kind}': {hint}")


def _user_connector(role: Role, name: str, reference: object, place: Place, contract: ABCMeta) -> Any:
    expected = f"a class that extends penstock.connectors.base.{contract.__name__}"
    if not isinstance(reference, str):
        raise TopologyError(f"{role} '{name}': custom needs 'module:Class', {expected}")
    try:
        found = load_user_object(reference, place.folder)
    except TopologyError as error:
        raise TopologyError(f"{role} '{name}': {error}") from error
    if not (isinstance(found, type) and issubclass(found, contract)):
        what = "a class without that base" if isinstance(found, type) else f"a {type(found).__name__}"
        raise TopologyError(f"{role} '{name}': '{reference}' must be {expected}, and is {what}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise TopologyError(f"{role} '{name}': '{reference}' lacks what every {role} has: {missing}")
    return found


def _completed(connector: type[SourceConnector] | type[SinkConnector], role: Role, name: str,
               node: Source | Sink) -> dict[str, Any]:
    """The options as `configure` is promised them: all known ones, with the defaults of those not given."""
    kind: Kind | None = getattr(connector, "describe", None)
    if kind is None:
        return dict(node.options)
    described = ([kind.argument] if kind.argument and node.kind != CUSTOM else []) + list(kind.options)
    if node.kind != CUSTOM:
        _refuse_unknown_options(role, name, node, {option.name for option in described} | {kind.name})
    required = [option.name for option in described if option.required]
    missing = [option for option in required if node.options.get(option) is None]
    if missing:
        raise TopologyError(f"{role} '{name}': {node.kind} needs {', '.join(missing)}")
    return {**{option.name: option.default for option in described if not option.required}, **node.options}


def _refuse_unknown_options(role: Role, name: str, node: Source | Sink, known: set[str]) -> None:
    for option in node.options:
        if option not in known:
            hint = suggest(option, known) or f"it has {', '.join(sorted(known))}"
            raise TopologyError(f"{role} '{name}': {node.kind} has no option '{option}': {hint}")
