from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.base import Place, SinkConnector, SourceConnector
from penstock.connectors.console import ConsoleSink
from penstock.connectors.file_sink import FileSink
from penstock.connectors.file_source import FileSource
from penstock.connectors.registry import SINKS, SOURCES, catalogue, sink_connector, source_connector
from penstock.errors import TopologyError
from penstock.topology.model import OPERATOR_KINDS, FrozenOptions, Sink, Source, StreamRef
from penstock.topology.schema import Schema, parse_schema

OWN_CONNECTORS = '''
from penstock.connectors.base import Cut, SinkConnector, Slice, SourceConnector, Staged
from penstock.topology.catalogue import Kind, Option

class Numbers(SourceConnector):
    def __init__(self, place, options, columns):
        self.place, self.options, self.columns = place, options, columns

    @classmethod
    def configure(cls, place, options, schema):
        return cls(place, options, schema)

    def schema(self): return self.columns
    def start(self): return {"at": 0}
    def cut(self, start, limit): return Cut(start, 0, True)
    def slices(self, start, end, parallelism): return []
    def read(self, part): return iter(())

class Mailbox(SinkConnector):
    describe = Kind("mailbox", "sink", "Mails rows.", None, (
        Option("subject", "string", "What it says.", "rows"), Option("to", "string", "To whom.", "ann")))

    def __init__(self, options): self.options = options

    @classmethod
    def configure(cls, place, options): return cls(options)

    def stage(self, batches): return Staged(0)
    def commit(self, epoch, staged): ...

class HalfDone(SinkConnector):
    def stage(self, batches): return Staged(0)

def not_a_class(): ...
class NotAConnector: ...
'''


def source(kind: str, schema: Schema | None = None, **options: Any) -> Source:
    return Source("tweets", kind, FrozenOptions(options), schema)


def sink(kind: str, **options: Any) -> Sink:
    return Sink("out", StreamRef("tweets"), kind, FrozenOptions(options))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "mine.py").write_text(OWN_CONNECTORS)
    yield Place("reach", "out", tmp_path)


def test_the_catalogue_has_every_kind_once() -> None:
    kinds = catalogue()
    assert [kind.name for kind in kinds.of("source")] == ["file", "generator", "spout", "rows", "nexmark", "custom"]
    assert [kind.name for kind in kinds.of("operator")] == [operator.keyword for operator in OPERATOR_KINDS]
    assert [kind.name for kind in kinds.of("sink")] == ["file", "sql", "console", "memory", "custom"]


@pytest.mark.parametrize("connector", [*SOURCES.values(), *SINKS.values()])
def test_every_connector_describes_itself_in_its_role(
        connector: type[SourceConnector] | type[SinkConnector]) -> None:
    kind = connector.describe
    assert kind.role == ("source" if issubclass(connector, SourceConnector) else "sink")
    assert kind.argument is not None
    assert kind.argument.name == kind.name
    assert all(option.doc.endswith(".") for option in (kind.argument, *kind.options))


def test_a_sink_is_made_with_the_catalogues_defaults(place: Place) -> None:
    made = sink_connector(sink("file", file="out/reach.csv", header=False), place)
    assert isinstance(made, FileSink)
    assert (made.path, made.header, made.overwrite) == (place.folder / "out/reach.csv", False, False)
    shown = sink_connector(sink("console", console=None), place)
    assert isinstance(shown, ConsoleSink)
    assert shown.limit == 20


def test_a_source_is_made_with_its_schema(place: Place) -> None:
    schema = parse_schema("id int, user string")
    (place.folder / "tweets.csv").write_text("1,ann\n")
    made = source_connector(source("file", schema, file="tweets.csv"), place)
    assert isinstance(made, FileSource)
    assert made.schema() == schema


@pytest.mark.parametrize(("kind", "message"), [
    ("flie", "source 'tweets': no kind of source 'flie': did you mean 'file'?"),
    ("kafka", "source 'tweets': no kind of source 'kafka': there are file, generator, spout, rows, nexmark, custom"),
])
def test_an_unknown_kind_of_source_is_refused(place: Place, kind: str, message: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        source_connector(source(kind), place)
    assert str(refusal.value) == message


@pytest.mark.parametrize(("node", "message"), [
    (sink("consle"), "sink 'out': no kind of sink 'consle': did you mean 'console'?"),
    (sink("file", file="a.csv", haeder=True),
     "sink 'out': file has no option 'haeder': did you mean 'header'?"),
    (sink("memory", size=3), "sink 'out': memory has no option 'size': it has memory"),
    (sink("file"), "sink 'out': file needs file"),
])
def test_what_makes_no_sink_is_refused(place: Place, node: Sink, message: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        sink_connector(node, place)
    assert str(refusal.value) == message


def test_a_users_own_source_gets_every_option(place: Place) -> None:
    schema = parse_schema("n int")
    made = source_connector(source("custom", schema, custom="mine:Numbers", upto=3, flavour="odd"), place)
    assert vars(made) == {"place": place, "columns": schema,
                          "options": {"custom": "mine:Numbers", "upto": 3, "flavour": "odd"}}


def test_a_users_own_sink_gets_the_defaults_it_describes(place: Place) -> None:
    made = sink_connector(sink("custom", custom="mine:Mailbox", to="bob", extra=1), place)
    assert vars(made)["options"] == {"custom": "mine:Mailbox", "subject": "rows", "to": "bob", "extra": 1}


@pytest.mark.parametrize(("reference", "message"), [
    ("mine:Numbers", "'mine:Numbers' must be a class that extends penstock.connectors.base.SinkConnector, "
                     "and is a class without that base"),
    ("mine:NotAConnector", "and is a class without that base"),
    ("mine:not_a_class", "and is a function"),
    ("mine:HalfDone", "'mine:HalfDone' lacks what every sink has: commit, configure"),
    ("mine:Mailbx", "sink 'out': module 'mine' has no 'Mailbx': did you mean 'Mailbox'?"),
    (None, "custom needs 'module:Class', a class that extends penstock.connectors.base.SinkConnector"),
])
def test_what_is_no_connector_is_refused(place: Place, reference: str | None, message: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        sink_connector(sink("custom", custom=reference), place)
    assert message in str(refusal.value)


@pytest.mark.parametrize("node", [sink("file", file="out/"), sink("console"), sink("memory")])
def test_sinks_made_here_travel_by_pickle(place: Place, node: Sink) -> None:
    made = sink_connector(node, place)
    assert pickle.loads(pickle.dumps(made)) == made
