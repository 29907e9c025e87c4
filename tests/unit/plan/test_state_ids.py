from __future__ import annotations

from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.plan.state_ids import state_ids
from penstock.topology.model import Count, Filter, FrozenOptions, Sink, Source, StreamRef, Topology, Union, Uniq

WORDS = Source("words", "file", FrozenOptions(file="words.txt"))
FIRST = Uniq("first", (StreamRef("words"),), keys=("word",))
TOTAL = Count("total", (StreamRef("first"),))
LONG = Filter("long", (StreamRef("words"),), condition="length(word) > 9")
COUNTS = Count("counts", (StreamRef("long"),), keys=("word",))


def sink(stream: str) -> Sink:
    return Sink(f"{stream}-out", StreamRef(stream), "console", FrozenOptions())


def ids(*operators: object, sinks: tuple[str, ...]) -> tuple[str, ...]:
    topology = Topology("t", sources=(WORDS,), operators=operators, sinks=tuple(map(sink, sinks)))  # type: ignore[arg-type]
    return state_ids(rewrite(build_plan(topology)))


def test_state_is_numbered_from_the_sinks_upwards() -> None:
    assert ids(FIRST, TOTAL, sinks=("total",)) == ("total", "first")


def test_branches_come_in_the_order_of_the_sinks() -> None:
    assert ids(FIRST, TOTAL, LONG, COUNTS, sinks=("counts", "total")) == ("counts", "total", "first")


def test_state_that_several_sinks_draw_on_has_several_numbers() -> None:
    assert ids(FIRST, TOTAL, sinks=("first", "total")) == ("first", "total", "first")


def test_the_streams_of_a_union_follow_each_other() -> None:
    both = Union("both", (StreamRef("counts"), StreamRef("total")))
    last = Count("last", (StreamRef("both"),))
    assert ids(FIRST, TOTAL, LONG, COUNTS, both, last, sinks=("last",)) == ("last", "counts", "total", "first")


def test_without_state_there_are_none() -> None:
    assert ids(LONG, sinks=("long", "words")) == ()
