from __future__ import annotations

from typing import Any

from penstock.topology.model import Case, Count, FrozenOptions, Sink, Source, StreamRef, Topology
from penstock.topology.schema import parse_schema
from penstock.validation.cases import check_cases
from penstock.validation.schemas import stream_schemas


def messages(given: dict[str, Any], expect: dict[str, Any], schema: str | None = "user string") -> list[str]:
    source = Source("tweets", "memory", FrozenOptions(), parse_schema(schema) if schema else None)
    topology = Topology(
        "t", sources=(source,), operators=(Count("n", (StreamRef("tweets"),), keys=("user",)),),
        sinks=(Sink("out", StreamRef("n"), "console", FrozenOptions()),), tests=(Case("one", given, expect),))
    return [problem.message for problem in check_cases(topology, stream_schemas(topology))]


def test_rows_that_fit_are_fine() -> None:
    assert messages({"tweets": ({"user": "a"},)}, {"out": ({"user": "a", "count": 1},)}) == []


def test_unknown_sources_and_sinks_are_suggested() -> None:
    assert messages({"twets": ()}, {"ot": ()}) == [
        "test 'one': no source 'twets': did you mean 'tweets'?",
        "test 'one': no sink 'ot': did you mean 'out'?"]


def test_an_unknown_column_is_reported_once_however_many_rows_have_it() -> None:
    assert messages({"tweets": ({"usr": "a"}, {"usr": "b"})}, {"out": ({"user": "a", "cnt": 1},)}) == [
        "test 'one': source 'tweets' has no column 'usr': did you mean 'user'?",
        "test 'one': sink 'out' has no column 'cnt': did you mean 'count'?"]


def test_columns_are_not_checked_where_they_are_not_known() -> None:
    assert messages({"tweets": ({"any": 1},)}, {}, schema=None) == []
