from __future__ import annotations

import pytest

from penstock.errors import TopologyError
from penstock.plan.graph import Apply, Exchange, Merge, Plan, Port, Read, Share, Write, build_plan
from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Filter,
    FrozenOptions,
    Location,
    Operator,
    Route,
    RouteKind,
    Sink,
    Source,
    StreamRef,
    Topology,
    Union,
    Uniq,
)
from penstock.topology.schema import parse_schema

PORTS = (("left", parse_schema("x int")), ("right", parse_schema("x int")))


def refs(*names: str) -> tuple[StreamRef, ...]:
    return tuple(StreamRef(*name.split(".")) for name in names)


def topology(*operators: Operator, sinks: tuple[str, ...] = ()) -> Topology:
    return Topology("t", sources=(Source("lines", "file", FrozenOptions(file="x")),), operators=operators,
                    sinks=tuple(Sink(f"out{number or ''}", *refs(read), "memory", FrozenOptions())
                                for number, read in enumerate(sinks)))


def shape(plan: Plan) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(type(step).__name__, step.id, step.reads()) for step in plan.steps]


def test_a_chain_is_read_applied_and_written() -> None:
    plan = build_plan(topology(Filter("a", refs("lines"), condition="x > 1"), sinks=("a",)))

    assert shape(plan) == [("Read", "lines", ()), ("Apply", "a", ("lines",)), ("Write", "out", ("a",))]


def test_steps_follow_what_they_read_even_when_written_the_other_way_round() -> None:
    plan = build_plan(topology(Dup("last", refs("middle")), Dup("middle", refs("first")),
                               Dup("first", refs("lines")), sinks=("last",)))

    assert [step.id for step in plan.steps] == ["lines", "first", "middle", "last", "out"]


def test_several_inputs_are_merged_before_the_operator() -> None:
    plan = build_plan(topology(Dup("a", refs("lines")), Filter("b", refs("lines", "a"), condition="x"),
                               sinks=("b",)))

    assert plan.step("b.merge") == Merge("b.merge", ("lines.share", "a"))
    assert plan.step("b").reads() == ("b.merge",)


def test_a_route_is_a_step_after_the_merge_and_before_the_operator() -> None:
    route = Route(RouteKind.HASH, ("user",))
    plan = build_plan(topology(Dup("a", refs("lines")),
                               Union("b", refs("lines", "a"), route=route, parallelism=3), sinks=("b",)))

    assert plan.step("b.route") == Exchange("b.route", "b.merge", route, 3)
    assert plan.step("b").reads() == ("b.route",)


@pytest.mark.parametrize(("operator", "route"), [
    (Dup("a", refs("lines"), parallelism=2), Route(RouteKind.SHUFFLE)),
    (Uniq("a", refs("lines"), keys=("user",), parallelism=2), Route(RouteKind.HASH, ("user",))),
    (Count("a", refs("lines"), keys=("user",), parallelism=2), Route(RouteKind.HASH, ("user",))),
    (Count("a", refs("lines"), parallelism=2), Route(RouteKind.GLOBAL)),
])
def test_parallelism_alone_keeps_the_tuples_of_a_key_together(operator: Operator, route: Route) -> None:
    plan = build_plan(topology(operator, sinks=("a",)))

    assert plan.step("a.route") == Exchange("a.route", "lines", route, 2)


def test_a_stream_with_two_readers_is_shared() -> None:
    plan = build_plan(topology(Dup("a", refs("lines")), sinks=("a", "lines")))

    assert plan.step("lines.share") == Share("lines.share", "lines", 2)
    assert {step.id for step in plan.readers("lines.share")} == {"a", "out1"}


def test_a_stream_read_twice_by_one_operator_is_shared_and_counts_twice() -> None:
    plan = build_plan(topology(Union("twice", refs("lines", "lines")), sinks=("twice",)))

    assert plan.step("twice.merge").reads() == ("lines.share", "lines.share")
    assert plan.step("lines.share") == Share("lines.share", "lines", 2)


def test_ports_are_selected_from_one_shared_output() -> None:
    plan = build_plan(topology(Custom("split", refs("lines"), code="m:f", emits=PORTS),
                               sinks=("split.left", "split.right")))

    assert plan.step("split.share") == Share("split.share", "split", 2)
    assert plan.step("split.left") == Port("split.left", "split.share", "left")
    assert plan.step("split.right") == Port("split.right", "split.share", "right")


def test_a_single_port_that_is_read_needs_no_share() -> None:
    plan = build_plan(topology(Custom("split", refs("lines"), code="m:f", emits=PORTS),
                               sinks=("split.right",)))

    assert plan.step("split.right") == Port("split.right", "split", "right")
    assert not [step for step in plan.steps if isinstance(step, Share)]


def test_ids_stay_unique_when_a_port_or_a_sink_is_named_like_another_step() -> None:
    emits = (("share", parse_schema("x int")), ("route", parse_schema("x int")))
    operator = Custom("out", refs("lines"), code="m:f", emits=emits, route=Route(RouteKind.SHUFFLE))
    plan = build_plan(topology(operator, sinks=("out.share", "out.route")))

    ids = [step.id for step in plan.steps]
    assert len(ids) == len(set(ids))
    assert isinstance(plan.step("out"), Apply)
    assert [type(step) for step in plan.steps if isinstance(step, Write)] == [Write, Write]


def test_every_step_comes_after_all_that_it_reads(log_alerts: Topology) -> None:
    seen: set[str] = set()
    for step in build_plan(log_alerts).steps:
        assert seen.issuperset(step.reads())
        seen.add(step.id)
    assert {"logs", "every", "alerts"} <= seen


def test_the_same_topology_gives_an_equal_plan(log_alerts: Topology) -> None:
    assert build_plan(log_alerts) == build_plan(log_alerts)
    assert isinstance(build_plan(log_alerts).steps[0], Read)


def test_a_cycle_is_refused_with_its_operators_and_place() -> None:
    where = Location("flow.yaml", 7)
    looped = topology(Dup("a", refs("b"), where=where), Dup("b", refs("a")), sinks=("b",))

    with pytest.raises(TopologyError, match=r"flow\.yaml:7: .*'a', 'b'"):
        build_plan(looped)


def test_a_missing_stream_is_refused_with_those_there_are() -> None:
    with pytest.raises(TopologyError, match=r"'a' reads 'lins', .*no such stream; there are lines, a"):
        build_plan(topology(Dup("a", refs("lins")), sinks=("a",)))


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(TopologyError, match="'lines' is given twice"):
        build_plan(topology(Dup("lines", refs("lines")), sinks=("lines",)))


def test_an_operator_without_input_is_refused() -> None:
    with pytest.raises(TopologyError, match="'a' reads no stream"):
        build_plan(topology(Dup("a", ()), sinks=("a",)))
