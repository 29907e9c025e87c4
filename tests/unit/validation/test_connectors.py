from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.topology.catalogue import REQUIRED, Catalogue, Kind, Option
from penstock.topology.model import FrozenOptions, Sink, Source, StreamRef, Topology
from penstock.topology.schema import Schema, parse_schema
from penstock.validation.connectors import check_connectors

CATALOGUE = Catalogue((
    Kind("file", "source", "Read files.", Option("file", "path", "The file.", REQUIRED), (
        Option("format", "choice", "How it is written.", choices=("csv", "json")),
        Option("header", "boolean", "Whether it has one."),
        Option("rows", "integer", "How many.", minimum=1))),
    Kind("ticker", "source", "Tick.", Option("ticker", "number", "Ticks a second.", REQUIRED), (
        Option("schema", "schema", "Its columns.", REQUIRED),)),
    Kind("file", "sink", "Write files.", Option("file", "path", "The file.", REQUIRED)),
    Kind("console", "sink", "Show tuples.", None),
))


def source(kind: str, schema: Schema | None = None, **options: Any) -> Source:
    return Source("in", kind, FrozenOptions(options), schema)


def sink(name: str, kind: str, **options: Any) -> Sink:
    return Sink(name, StreamRef("in"), kind, FrozenOptions(options))


def messages(*sources: Source, sinks: tuple[Sink, ...] = ()) -> list[str]:
    topology = Topology("t", sources=sources, sinks=sinks, folder=Path("folder"))
    return [problem.message for problem in check_connectors(topology, CATALOGUE)]


def test_known_options_of_the_right_type_are_fine() -> None:
    assert messages(source("file", file="a.csv", format="csv", header=True, rows=3),
                    sinks=(sink("out", "console", console=None),)) == []


def test_an_unknown_kind_is_suggested() -> None:
    assert messages(source("fil"), sinks=(sink("out", "consle"),)) == [
        "source 'in': no kind of source 'fil': did you mean 'file'?",
        "sink 'out': no kind of sink 'consle': did you mean 'console'?"]


def test_a_users_own_connector_knows_its_options_itself() -> None:
    assert messages(source("custom", custom="m:Spout", any=1), source("m:Spout", any=1)) == []


def test_an_unknown_option_is_suggested() -> None:
    assert messages(source("file", file="a", formt="csv")) == [
        "source 'in': file has no option 'formt': did you mean 'format'?"]


def test_a_missing_option_is_named() -> None:
    assert messages(source("file")) == ["source 'in': file needs 'file'"]
    assert messages(source("file", file=None)) == ["source 'in': file needs 'file'"]


def test_a_misspelt_required_option_is_one_problem() -> None:
    assert messages(source("file", fille="a.csv")) == [
        "source 'in': file has no option 'fille': did you mean 'file'?"]


def test_a_required_schema_may_be_the_sources_own() -> None:
    assert messages(source("ticker", ticker=1)) == ["source 'in': ticker needs 'schema'"]
    assert messages(source("ticker", parse_schema("n int"), ticker=1)) == []


def test_values_must_have_the_options_type() -> None:
    found = messages(source("file", file="a", format="xml", header="yes", rows=0),
                     source("file", file=3, rows="many"))
    options = [message.split(":")[1].strip() for message in found]
    assert options == ["format", "header", "rows", "file", "rows"]


def test_two_sinks_may_not_write_the_same_file() -> None:
    sinks = (sink("a", "file", file="out/x.jsonl"), sink("b", "file", file="./out/../out/x.jsonl"),
             sink("c", "file", file="out/y.jsonl"))
    assert messages(sinks=sinks) == [
        "sink 'b' writes to './out/../out/x.jsonl', and so does sink 'a'"]


def test_two_consoles_are_fine() -> None:
    assert messages(sinks=(sink("a", "console"), sink("b", "console"))) == []
