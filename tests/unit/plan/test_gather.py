from __future__ import annotations

from penstock.epochs.ticking import tick_rules
from penstock.plan.counting import Measured, derive_counts
from penstock.plan.description import brief_of
from penstock.plan.graph import Apply, Exchange, Gather, Merge, build_plan
from penstock.plan.output_mode import output_mode
from penstock.plan.pruning import columns_read
from penstock.plan.rewrites import rewrite
from penstock.plan.small_epochs import output_is_bounded
from penstock.plan.svg import plan_svg
from penstock.plan.text import plan_text
from penstock.runtime.compatibility import changes, shape_of
from penstock.topology.builder import Stream
from penstock.topology.model import RouteKind, Topology


def orders() -> Stream:
    return Topology("shop").source("orders", file="orders.jsonl", schema="id int, amount int, at timestamp, note int")


def payments() -> Stream:
    return Topology("shop").source("payments", file="p.jsonl", schema="order_id int, amount int, at timestamp, by int")


def joined(kind: str = "inner", on: str | None = "at") -> Stream:
    return orders().join(payments(), "orders.id = payments.order_id", within="1 hour", on=on, kind=kind, name="paid")


def test_the_ports_of_a_join_are_gathered_and_never_exchanged_by_us() -> None:
    topology = orders().join(payments(), "orders.id = payments.order_id", within=1, parallelism=3, name="paid")
    plan = rewrite(build_plan(topology.sink("out", console=True)))
    assert [type(step).__name__ for step in plan.steps] == ["Read", "Read", "Gather", "Apply", "Write"]
    gather = plan.step("paid.ports")
    assert isinstance(gather, Gather)
    assert (gather.inputs, gather.ports) == (("orders", "payments"), ("orders", "payments"))


def test_a_port_with_several_streams_merges_them_first() -> None:
    topology = Topology("t").source("a", rows=[], schema="x int").topology
    topology = topology.merge(Topology("t").source("b", rows=[], schema="x int").topology)
    union = topology.stream("a").union(topology.stream("b"), name="u")
    both = {"left": union, "right": topology.stream("a")}
    plan = rewrite(build_plan(union.custom("m:f", emits="x int", ports=both).sink("out", console=True)))
    assert sum(isinstance(step, Merge) for step in plan.steps) == 1


def test_synchronous_access_brings_all_tuples_together_unless_a_route_says_how() -> None:
    both = {"orders": orders(), "payments": payments()}
    together = both["orders"].custom("m:B", emits="x int", ports=both, access="synchronous").sink("out", console=True)
    [route] = [step.route for step in build_plan(together).steps if isinstance(step, Exchange)]
    assert route.kind is RouteKind.GLOBAL
    apart = both["orders"].custom("m:B", emits="x int", ports=both, access="synchronous", route="hash(id)")
    [route] = [step.route for step in build_plan(apart.sink("out", console=True)).steps if isinstance(step, Exchange)]
    assert str(route) == "hash(id)"


def test_a_join_reads_the_columns_of_its_condition_its_times_and_what_is_wanted_of_it() -> None:
    topology = joined().select("id", "payments_amount").sink("out", console=True)
    read = columns_read(build_plan(topology))
    assert read["orders"] == read["payments"]
    assert read["orders"] is not None
    assert {"id", "order_id", "amount", "at"} <= read["orders"]
    assert not {"note", "by"} & read["orders"]


def test_an_enrichment_reads_its_key() -> None:
    stream = orders().enrich("p.csv", by="id", schema="id int, price double").select("price")
    assert columns_read(build_plan(stream.sink("out", console=True)))["orders"] == {"price", "id"}


def test_joins_may_give_more_than_they_take() -> None:
    assert not output_is_bounded(build_plan(joined().sink("out", console=True)))


def test_a_left_join_waits_for_the_end_of_times_and_an_inner_one_does_not() -> None:
    inner, left = joined().topology, joined("left").topology
    assert (output_mode(inner), output_mode(left)) == ("update", "append")
    assert not tick_rules(inner).settle
    assert tick_rules(left).settle


def test_a_left_join_on_the_time_of_epochs_is_looked_at_while_sources_are_idle() -> None:
    rules = tick_rules(joined("left", on=None).topology)
    assert rules.steps == (360_000,)
    assert rules.longest == 3_960_000


def test_the_plan_shows_ports() -> None:
    topology = joined("left").sink("out", console=True)
    assert "ports orders: orders, payments: payments" in plan_text(build_plan(topology))
    assert brief_of(topology.operators[0]) == "left join orders.id = payments.order_id within 1h"
    assert "→ payments" in plan_svg(topology)


def test_the_count_of_a_gathered_operator_is_its_own() -> None:
    plan = build_plan(joined().sink("out", console=True))
    assert isinstance(plan.step("paid"), Apply)
    assert derive_counts(plan, Measured({"orders": 5, "payments": 4}, {"out": 3})) == {"paid": 3}


def test_a_join_with_another_condition_does_not_go_on_from_the_old_state() -> None:
    before = shape_of(joined().sink("out", console=True), 2)
    other = orders().join(payments(), "orders.amount = payments.amount", within=9, on="at", name="paid")
    assert any("condition" in change for change in changes(before, shape_of(other.sink("out", console=True), 2)))
    longer = orders().join(payments(), "orders.id = payments.order_id", within=9, on="at", name="paid")
    assert changes(before, shape_of(longer.sink("out", console=True), 2)) == []


def test_a_join_that_has_to_keep_another_column_does_not_go_on_from_the_old_state() -> None:
    before = shape_of(joined().select("id").sink("out", console=True), 2)
    assert changes(before, shape_of(joined().select("upper(id) as who").sink("out", console=True), 2)) == []
    [said] = changes(before, shape_of(joined().select("id", "note").sink("out", console=True), 2))
    assert "columns was" in said and "orders.note" in said
