"""Which custom code and sink may be done in one process."""

from __future__ import annotations

from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.plan.tail import code_before_sink
from penstock.topology.builder import Stream
from penstock.topology.model import Topology


def events() -> Stream:
    return Topology("t").source("events", file="events.jsonl", schema="id int, user string")


def code(stream: Stream, **options: object) -> Stream:
    return stream.custom("m:f", name="own", **{"emits": "id int", **options})  # type: ignore[arg-type]


def found(topology: Topology) -> str | None:
    operator = code_before_sink(rewrite(build_plan(topology)))
    return None if operator is None else operator.name


def test_code_whose_tuples_go_to_the_only_sink() -> None:
    assert found(code(events().filter("id > 1")).sink("out", console=True)) == "own"


def test_not_where_anybody_else_reads_what_it_gives_or_what_there_is() -> None:
    own = code(events())
    assert found(own.sink("out", console=True).stream("own").filter("id > 1").sink("other", console=True)) is None
    assert found(own.sink("out", console=True).stream("events").sink("other", console=True)) is None


def test_not_where_spark_has_work_between_them() -> None:
    assert found(code(events()).filter("id > 1").sink("out", console=True)) is None


def test_not_with_a_key_whose_state_is_a_stage_of_its_own() -> None:
    assert found(code(events(), key="user").sink("out", console=True)) is None
