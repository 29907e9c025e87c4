from __future__ import annotations

import pytest

from penstock.topology.dead_letters import buries, dead_letter_sink
from penstock.topology.model import Custom, ErrorKind, FrozenOptions, OnError, Source, StreamRef, Topology


def test_dead_letters_go_to_the_file_named_or_to_one_of_the_topologys_name() -> None:
    assert dead_letter_sink(Topology("t")).options["file"] == "dead-letters/t.jsonl"
    assert dead_letter_sink(Topology("t", dead_letters="lost.jsonl")).options["file"] == "lost.jsonl"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(ErrorKind.FAIL, False), (ErrorKind.DROP, False), (ErrorKind.RETRY, True), (ErrorKind.DEAD_LETTER, True)],
)
def test_a_topology_buries_tuples_when_an_operator_says_so(kind: ErrorKind, expected: bool) -> None:
    operator = Custom("own", (StreamRef("s"),), code="a:b", on_error=OnError(kind))
    assert buries(Topology("t", operators=(operator,))) is expected


@pytest.mark.parametrize(("on_malformed", "expected"), [("fail", False), ("drop", False), ("dead-letter", True)])
def test_a_topology_buries_records_when_a_source_says_so(on_malformed: str, expected: bool) -> None:
    source = Source("s", "file", FrozenOptions(file="a.csv"), on_malformed=on_malformed)
    assert buries(Topology("t", sources=(source,))) is expected
