from __future__ import annotations

import pytest

from penstock.topology.dead_letters import buries, dead_letter_sink, why_not_replayed
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


# -- where a dead letter can be replayed without anybody having a tuple twice -----------------------------

def own(**more: str) -> dict[str, str]:
    return {"emits": "n bigint", "on_error": "dead-letter", "name": "own", **more}


def straight() -> Topology:
    stream = Topology("t").source("s", file="s.csv", schema="n bigint").filter("n > 0", name="some")
    return stream.custom("own:code", **own()).sink("o", file="o.jsonl")


def branching() -> Topology:
    topology = straight()
    return topology.stream("s").sink("all", file="all.jsonl")


def after_a_function() -> Topology:
    stream = Topology("t").source("s", file="s.csv", schema="n bigint")
    stream = stream.custom("own:split", emits="n bigint", name="split")
    return stream.custom("own:code", **own()).sink("o", file="o.jsonl")


def after_a_state() -> Topology:
    stream = Topology("t").source("s", file="s.csv", schema="n bigint").uniq("n", name="first")
    return stream.custom("own:code", **own()).sink("o", file="o.jsonl")


@pytest.mark.parametrize(
    ("topology", "why"),
    [
        (straight(), ""),
        (branching(), "'all' would have the source tuple twice"),
        (after_a_function(), "'split', above it, may make several tuples of one"),
        (after_a_state(), "'first', above it, may make several tuples of one, or remember it"),
    ],
)
def test_only_where_nobody_has_it_twice(topology: Topology, why: str) -> None:
    assert why_not_replayed(topology, "own").startswith(why)
    assert bool(why_not_replayed(topology, "own")) == bool(why)


def test_what_never_was_a_tuple_is_not_replayed() -> None:
    assert "correct the source" in why_not_replayed(straight(), "s")
