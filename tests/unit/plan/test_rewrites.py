from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.plan.graph import (
    Apply,
    Exchange,
    Merge,
    OneInput,
    Plan,
    Port,
    Read,
    Share,
    Write,
    build_plan,
)
from penstock.plan.rewrites import (
    drop_idle_shares,
    drop_local_routes,
    drop_overridden_exchanges,
    drop_pass_through,
    drop_repeated_shares,
    drop_routes_of_state,
    drop_unneeded,
    rewrite,
)
from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Filter,
    FrozenOptions,
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

PORTS = (("odd", parse_schema("x int")), ("even", parse_schema("x int")))
BY_USER = Route(RouteKind.HASH, ("user",))


def refs(*names: str) -> tuple[StreamRef, ...]:
    return tuple(StreamRef(*name.split(".")) for name in names)


def plan_of(*operators: Operator, sinks: tuple[str, ...]) -> Plan:
    return build_plan(Topology("t", sources=(Source("lines", "file", FrozenOptions(file="x")),
                                             Source("more", "file", FrozenOptions(file="y"))),
                               operators=operators,
                               sinks=tuple(Sink(f"out{number or ''}", *refs(read), "memory", FrozenOptions())
                                           for number, read in enumerate(sinks))))


def ids(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps]


def test_steps_that_lead_to_no_sink_are_dropped() -> None:
    plan = drop_unneeded(plan_of(Dup("a", refs("lines")), Dup("lost", refs("lines")), sinks=("a",)))

    assert ids(plan) == ["lines", "lines.share", "a", "out"]
    assert plan.notes == ("dropped 'more': no sink needs it", "dropped 'lost': no sink needs it")


def test_a_dup_vanishes() -> None:
    plan = drop_pass_through(plan_of(Dup("a", refs("lines")), sinks=("a",)))

    assert plan.step("out").reads() == ("lines",)
    assert plan.notes == ("dropped dup 'a': it passes every tuple on unchanged",)


def test_a_chain_of_dups_vanishes_at_once() -> None:
    plan = drop_pass_through(plan_of(Dup("a", refs("lines")), Dup("b", refs("a")), sinks=("b",)))

    assert plan.step("out").reads() == ("lines",)


def test_a_union_leaves_only_the_merge_of_its_inputs() -> None:
    plan = drop_pass_through(plan_of(Union("both", refs("lines", "more")), Union("one", refs("both")),
                                     sinks=("one",)))

    assert ids(plan) == ["lines", "more", "both.merge", "out"]
    assert plan.step("out").reads() == ("both.merge",)


def test_a_local_route_vanishes_and_others_stay() -> None:
    plan = drop_local_routes(plan_of(
        Filter("a", refs("lines"), condition="x", route=Route(RouteKind.LOCAL)),
        Filter("b", refs("a"), condition="x", route=Route(RouteKind.SHUFFLE)), sinks=("b",)))

    assert plan.step("a").reads() == ("lines",)
    assert plan.step("b").reads() == ("b.route",)
    assert plan.notes == ("dropped 'a.route': a local route moves nothing",)


@pytest.mark.parametrize("operator", [
    Uniq("a", refs("lines"), keys=("user",), route=BY_USER),
    Uniq("a", refs("lines"), keys=("user", "url"), route=Route(RouteKind.HASH, ("url", "user"))),
    Count("a", refs("lines"), keys=("user",), route=BY_USER, parallelism=4),
    Count("a", refs("lines"), route=Route(RouteKind.GLOBAL)),
])
def test_a_route_that_the_state_repeats_is_dropped(operator: Operator) -> None:
    plan = drop_routes_of_state(plan_of(operator, sinks=("a",)))

    assert plan.step("a").reads() == ("lines",)
    [note] = plan.notes
    assert note == f"dropped 'a.route' {operator.route}: the state of 'a' divides its input so anyway"


@pytest.mark.parametrize("operator", [
    Uniq("a", refs("lines"), keys=("user", "url"), route=BY_USER),
    Count("a", refs("lines"), keys=("user",), route=Route(RouteKind.SHUFFLE)),
    Count("a", refs("lines"), keys=("user",), route=Route(RouteKind.ALL)),
    Filter("a", refs("lines"), condition="x", route=BY_USER),
])
def test_any_other_route_stays(operator: Operator) -> None:
    plan = plan_of(operator, sinks=("a",))

    assert drop_routes_of_state(plan) == plan


def test_an_exchange_that_is_exchanged_again_is_dropped() -> None:
    plan = drop_overridden_exchanges(drop_pass_through(plan_of(
        Dup("a", refs("lines"), route=Route(RouteKind.SHUFFLE)),
        Filter("b", refs("a"), condition="x", route=BY_USER), sinks=("b",))))

    assert plan.step("b.route").reads() == ("lines",)
    assert plan.notes[-1] == "dropped 'a.route': 'b.route' divides the same tuples again"


def test_an_exchange_that_copies_tuples_is_never_dropped() -> None:
    plan = rewrite(plan_of(Dup("a", refs("lines"), route=Route(RouteKind.ALL), parallelism=2),
                           Filter("b", refs("a"), condition="x", route=BY_USER), sinks=("b",)))

    assert plan.step("b.route").reads() == ("a.route",)


def test_a_filter_after_a_share_stays_after_it() -> None:
    plan = rewrite(plan_of(Filter("a", refs("lines"), condition="x"), sinks=("a", "lines")))

    assert plan.step("a").reads() == ("lines.share",)
    assert plan.step("lines.share").reads() == ("lines",)


def test_a_share_whose_other_reader_is_gone_vanishes() -> None:
    plan = drop_idle_shares(drop_unneeded(plan_of(
        Filter("a", refs("lines"), condition="x"), Filter("lost", refs("lines"), condition="y"),
        sinks=("a",))))

    assert ids(plan) == ["lines", "a", "out"]
    assert plan.notes[-1] == "dropped 'lines.share': one reader is left"


def test_a_share_of_a_share_becomes_one_with_all_readers() -> None:
    plan = rewrite(plan_of(Dup("a", refs("lines")), sinks=("a", "a", "lines")))

    assert plan.step("lines.share") == Share("lines.share", "lines", 3)
    assert ids(plan) == ["lines", "lines.share", "out", "out1", "out2"]


def test_of_two_shares_in_a_row_one_stays_even_when_the_upper_has_lost_its_other_readers() -> None:
    plan = rewrite(plan_of(Dup("a", refs("lines")), Dup("lost", refs("lines")), sinks=("a", "a")))

    assert [step.consumers for step in plan.steps if isinstance(step, Share)] == [2]


def test_a_port_of_a_shared_output_is_not_shared_again() -> None:
    plan = drop_repeated_shares(plan_of(Custom("split", refs("lines"), code="m:f", emits=PORTS),
                                 sinks=("split.odd", "split.odd", "split.even")))

    assert plan.step("split.share") == Share("split.share", "split", 2)
    assert len(plan.readers("split.odd")) == 2


def test_a_lone_port_with_two_readers_stays_shared() -> None:
    plan = rewrite(plan_of(Custom("split", refs("lines"), code="m:f", emits=PORTS),
                           sinks=("split.odd", "split.odd")))

    assert plan.step("split.odd.share") == Share("split.odd.share", "split.odd", 2)


def test_a_filter_of_empty_texts_counts_no_characters() -> None:
    plan = rewrite(plan_of(Filter("a", refs("lines"), condition="length(url) > 0 and length(url) < 9"), sinks=("a",)))
    [apply] = (step for step in plan.steps if isinstance(step, Apply))
    assert isinstance(apply.operator, Filter)
    assert apply.operator.condition == "octet_length(url) > 0 and length(url) < 9"
    assert plan.notes[-1] == "'a' asks whether a text is empty: its characters are not counted"


def test_a_plan_with_nothing_to_improve_is_left_alone(url_reach: Topology) -> None:
    plan = build_plan(url_reach)

    assert rewrite(plan) == plan


# --- every rewrite at once, against an interpreter of plans over lists of numbers ---

ROUTES = st.sampled_from([None, None, None, Route(RouteKind.HASH, ("x",)),
                          *(Route(kind) for kind in RouteKind if kind is not RouteKind.HASH)])


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    streams = ["lines", "more"]
    operators: list[Operator] = []
    for number in range(draw(st.integers(1, 8))):
        name = f"op{number}"
        kind = draw(st.sampled_from(["filter", "filter", "dup", "union", "uniq", "count", "split"]))
        most = 3 if kind in ("union", "filter") else 1
        inputs = refs(*draw(st.lists(st.sampled_from(streams), min_size=1, max_size=most)))
        setting = {"route": draw(ROUTES), "parallelism": draw(st.sampled_from([None, None, 2]))}
        match kind:
            case "filter":
                condition = f"x {draw(st.sampled_from('<>'))} {draw(st.integers(0, 9))}"
                operators.append(Filter(name, inputs, condition=condition, **setting))
            case "dup":
                operators.append(Dup(name, inputs, **setting))
            case "union":
                operators.append(Union(name, inputs, **setting))
            case "uniq":
                operators.append(Uniq(name, inputs, keys=("x",), **setting))
            case "count":
                operators.append(Count(name, inputs, **setting))
            case _:
                operators.append(Custom(name, inputs, code="m:f", emits=PORTS, **setting))
        streams += [f"{name}.odd", f"{name}.even"] if kind == "split" else [name]
    read = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=4))
    return Topology("t", sources=(Source("lines", "memory", FrozenOptions()),
                                  Source("more", "memory", FrozenOptions())),
                    operators=tuple(operators),
                    sinks=tuple(Sink(f"out{number}", *refs(each), "memory", FrozenOptions())
                                for number, each in enumerate(read)))


def results(plan: Plan) -> dict[str, Counter[int]]:
    given_rows = {"lines": [1, 2, 2, 3, 5, 8], "more": [4, 4, 7, 9]}
    rows: dict[str, list[int]] = {}
    written: dict[str, Counter[int]] = {}
    for step in plan.steps:
        arrived = rows[step.input] if isinstance(step, OneInput) else []
        match step:
            case Read():
                arrived = given_rows[step.source.name]
            case Merge():
                arrived = [row for each in step.inputs for row in rows[each]]
            case Exchange() if step.route.kind is RouteKind.ALL:
                arrived = arrived * (step.parallelism or 3)
            case Apply():
                arrived = applied(step.operator, arrived)
            case Port():
                arrived = [row for row in arrived if row % 2 == (step.name == "odd")]
            case Write():
                written[step.sink.name] = Counter(arrived)
        rows[step.id] = arrived
    return written


def applied(operator: Operator, rows: list[int]) -> list[int]:
    match operator:
        case Filter():
            condition = re.sub("AND", "and", operator.condition)
            return [row for row in rows if eval(condition, {"x": row})]
        case Uniq():
            return sorted(set(rows))
        case Count():
            return [len(rows)]
        case _:
            return rows


@settings(max_examples=150, deadline=None)
@given(topologies())
def test_rewriting_never_changes_what_sinks_receive(topology: Topology) -> None:
    plan = build_plan(topology)

    assert results(rewrite(plan)) == results(plan)


@settings(max_examples=150, deadline=None)
@given(topologies())
def test_after_rewriting_whatever_is_read_twice_is_computed_once(topology: Topology) -> None:
    plan = rewrite(build_plan(topology))

    for step in plan.steps:
        if len(plan.readers(step.id)) > 1:
            above = step
            while isinstance(above, Port):
                above = plan.step(above.input)
            assert isinstance(above, Share)
        if isinstance(step, Share):
            assert step.consumers == len(plan.readers(step.id)) > 1
