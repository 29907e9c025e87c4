from __future__ import annotations

import pytest

from penstock.plan.graph import Plan, build_plan
from penstock.plan.rewrites import rewrite
from penstock.plan.small_epochs import output_is_bounded, sources_to_read_ahead
from penstock.topology.builder import Stream
from penstock.topology.model import Topology


def events(name: str = "events", topology: Topology | None = None) -> Stream:
    return (topology or Topology("t")).source(name, file=f"{name}.jsonl", schema="id int, words array<string>")


def plan_of(stream: Stream) -> Plan:
    return rewrite(build_plan(stream.sink("out", console=True)))


def code(stream: Stream, on_error: str = "fail") -> Stream:
    return stream.custom("m:f", emits="id int", on_error=on_error)


def test_a_source_of_built_in_operators_may_be_read_ahead() -> None:
    plan = plan_of(events().filter("id > 1").select("id").uniq("id").count())
    assert sources_to_read_ahead(plan) == {"events"}


@pytest.mark.parametrize("stream", [
    code(events()),
    code(events().filter("id > 1").select("id")),
    code(events().explode("words", "word")).count(),
])
def test_custom_code_keeps_its_tasks_when_it_reads_a_source_directly(stream: Stream) -> None:
    assert sources_to_read_ahead(plan_of(stream)) == frozenset()


def test_custom_code_behind_a_route_has_its_tasks_from_there() -> None:
    routed = events().filter("id > 1").custom("m:f", emits="id int", route="shuffle", parallelism=2)
    assert sources_to_read_ahead(plan_of(routed)) == {"events"}


def test_each_source_is_judged_by_what_it_feeds() -> None:
    topology = code(events("coded")).sink("one", console=True)
    topology = events("plain", topology).filter("id > 1").sink("two", console=True)
    assert sources_to_read_ahead(rewrite(build_plan(topology))) == {"plain"}


def test_a_source_that_feeds_custom_code_on_one_branch_only_is_shared_before_it() -> None:
    topology = events().filter("id > 1", name="some").sink("plain", console=True)
    topology = code(topology.stream("some")).sink("coded", console=True)
    plan = build_plan(topology)
    assert sources_to_read_ahead(plan) == {"events"}


def test_nothing_is_read_ahead_where_tuples_are_replayed() -> None:
    topology = code(events("coded"), on_error="retry(2)").sink("one", console=True)
    topology = events("plain", topology).filter("id > 1").sink("two", console=True)
    assert sources_to_read_ahead(rewrite(build_plan(topology))) == frozenset()


@pytest.mark.parametrize("stream", [
    events(),
    events().filter("id > 1").select("id", "id + 1 as more"),
    events().uniq("id"),
    events().count("id"),
    events().select("id", route="hash(id)", parallelism=3),
])
def test_few_tuples_in_are_few_out(stream: Stream) -> None:
    assert output_is_bounded(plan_of(stream))


@pytest.mark.parametrize("stream", [
    code(events()),
    events().explode("words", "word"),
    events().count("id", emit="each"),
    events().filter("id > 1", route="all", parallelism=3),
    events().explode("words", "word").count("word"),
])
def test_what_may_multiply_tuples_is_not_bounded(stream: Stream) -> None:
    assert not output_is_bounded(plan_of(stream))
