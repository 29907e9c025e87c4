from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import (
    Count,
    Filter,
    FrozenOptions,
    Operator,
    Route,
    RouteKind,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.schema import parse_schema
from penstock.topology.window import Window, parse_span
from penstock.validation.enrichments import check_enrichments
from penstock.validation.input_ports import check_input_ports
from penstock.validation.joins import check_joins
from penstock.validation.schemas import stream_schemas

SOURCES = (
    Source("orders", "file", FrozenOptions(), parse_schema("id int, item string, amount int, ordered_at timestamp")),
    Source("payments", "file", FrozenOptions(),
           parse_schema("order_id int, amount int, paid_at timestamp, note string")),
)
PAID = Join(
    "paid",
    (StreamRef("orders"), StreamRef("payments")),
    input_ports=("orders", "payments"),
    condition="orders.id = payments.order_id",
    within=3600.0,
    on=(("orders", "ordered_at"), ("payments", "paid_at")),
)
PRICED = Enrich("priced", (StreamRef("orders"),), table="prices.csv", keys=("item",),
                schema=parse_schema("item string, price double"))


def topology(operator: Operator) -> Topology:
    return Topology("t", sources=SOURCES, operators=(operator,))


def join_problems(**changes: Any) -> list[str]:
    made = topology(replace(PAID, **changes))
    return [problem.message.removeprefix("operator 'paid': ") for problem in check_joins(made, stream_schemas(made))]


def enrich_problems(**changes: Any) -> list[str]:
    made = topology(replace(PRICED, **changes))
    schemas = stream_schemas(made)
    return [problem.message.removeprefix("operator 'priced': ") for problem in check_enrichments(made, schemas)]


@pytest.mark.parametrize("condition", [
    "orders.id = payments.order_id",
    "orders.id = payments.order_id and payments.paid_at >= orders.ordered_at",
    "(payments.order_id = orders.id + 1) AND orders.amount < payments.amount",
    "upper(orders.item) = payments.note",
])
def test_a_condition_that_equates_both_ports_is_good(condition: str) -> None:
    assert join_problems(condition=condition) == []


@pytest.mark.parametrize(("condition", "said"), [
    ("", "join needs a condition"),
    ("orders.id = ", "is not a SQL expression"),
    ("id = payments.order_id", "'id' does not say of which port it is"),
    ("order.id = payments.order_id", "no port 'order': did you mean 'orders'?"),
    ("orders.nr = payments.order_id", "port 'orders' has no column 'nr'"),
    ("orders.item = payments.order_id", "orders.item is string and cannot be compared with payments.order_id"),
    ("orders.id < payments.order_id", "does not say which column of one port equals which of the other"),
    ("orders.id = 1", "does not say which column of one port equals which of the other"),
    ("orders.id = payments.order_id or true", "does not say which column of one port equals which of the other"),
    ("orders.id + payments.order_id", "is numeric, not true or false"),
    ("orders.id = max(payments.order_id)", "looks at more than two tuples"),
])
def test_a_condition_that_cannot_be_is_told(condition: str, said: str) -> None:
    [problem] = join_problems(condition=condition)
    assert said in problem


def test_a_join_has_exactly_two_ports() -> None:
    assert join_problems(input_ports=()) == ["a join has two ports, and this one has none"]
    assert join_problems(input_ports=("orders", "orders")) == ["a join has two ports, and this one has 1"]


@pytest.mark.parametrize(("on", "said"), [
    ((("orders", "ordered_at"),), "on: the column with the time of port 'payments' is missing"),
    ((("orders", "at"), ("payments", "paid_at")), "on: port 'orders' has no column 'at'"),
    ((("orders", "item"), ("payments", "paid_at")), "on: 'item' of port 'orders' is string, not a time"),
    ((("orders", "ordered_at"), ("payments", "paid_at"), ("paymets", "x")),
     "on: no port 'paymets': did you mean 'payments'?"),
])
def test_times_are_columns_of_both_ports(on: tuple[tuple[str, str], ...], said: str) -> None:
    assert join_problems(on=on) == [said]


@pytest.mark.parametrize(("changes", "said"), [
    ({"within": None}, "how long a tuple waits for its partner is missing"),
    ({"within": 1e12}, "within 1e+12 seconds is impossible"),
    ({"on": (), "lateness": 5.0}, "lateness has no meaning without `on`"),
    ({"route": Route(RouteKind.SHUFFLE)}, "a join divides its tuples by the columns that must be equal"),
])
def test_settings_that_cannot_be_are_told(changes: dict[str, Any], said: str) -> None:
    [problem] = join_problems(**changes)
    assert said in problem


def test_the_columns_of_a_join_are_those_of_both_ports() -> None:
    schema = stream_schemas(topology(PAID))[StreamRef("paid")]
    assert schema is not None
    assert str(schema) == ("id int, item string, orders_amount int, ordered_at timestamp, order_id int, "
                           "payments_amount int, paid_at timestamp, note string")


def test_two_columns_of_one_name_are_refused() -> None:
    sources = (replace(SOURCES[0], schema=parse_schema("id int, amount int, payments_amount int")), SOURCES[1])
    made = Topology("t", sources=sources, operators=(replace(PAID, on=()),))
    [problem] = check_joins(made, stream_schemas(made))
    assert "its result would have two columns 'payments_amount'" in problem.message


def problems_of(operators: tuple[Operator, ...]) -> list[str]:
    made = Topology("t", sources=SOURCES, operators=operators)
    return [problem.message for problem in check_joins(made, stream_schemas(made))]


def test_a_left_join_and_a_running_count_are_two_topologies() -> None:
    count = Count("n", (StreamRef("orders"),), keys=("item",))
    assert problems_of((PAID, count)) == []
    [problem] = problems_of((replace(PAID, kind="left"), count))
    assert "operator 'n': a running count changes all the time" in problem


def test_what_comes_after_a_join_says_where_its_time_stands() -> None:
    again = replace(PAID, name="again", inputs=(StreamRef("paid"), StreamRef("payments")), on=())
    [problem] = problems_of((PAID, again))
    assert "operator 'again': port 'orders' has tuples of 'paid', which may be of an earlier epoch" in problem
    again = replace(again, on=PAID.on, inputs=(StreamRef("paid"), StreamRef("payments")))
    assert problems_of((PAID, again)) == []
    window = Window("w", (StreamRef("paid"),), span=parse_span("tumbling(1h)"), compute=("count() as n",))
    assert "operator 'w': it reads the tuples of a join" in problems_of((PAID, window))[0]


def test_an_operator_with_one_input_has_no_ports() -> None:
    made = topology(Filter("big", PAID.inputs, input_ports=PAID.input_ports, condition="id > 1"))
    [problem] = check_input_ports(made, stream_schemas(made))
    assert problem.message == "operator 'big': filter has one input, not named ports"
    assert "from: [orders, payments]" in problem.hint


def test_an_enrichment_adds_all_columns_but_the_key() -> None:
    assert enrich_problems() == []
    schema = stream_schemas(topology(PRICED))[StreamRef("priced")]
    assert schema is not None
    assert schema.names == ("id", "item", "amount", "ordered_at", "price")


@pytest.mark.parametrize(("changes", "said"), [
    ({"keys": ()}, ["the columns by which a tuple finds its rows are missing"]),
    ({"keys": ("itm",)}, ["no column 'itm': did you mean 'item'?",
                          "the table has no column 'itm': did you mean 'item'?"]),
    ({"schema": None}, ["the columns of the table are missing"]),
    ({"schema": parse_schema("item int, price double")}, ["'item' is string in the stream and int in the table"]),
    ({"schema": parse_schema("item string, amount int")}, ["the stream and the table both have a column 'amount'"]),
    ({"table": "sqlite:///p.db"}, ["which table of the database is missing"]),
    ({"rows_of": "prices"}, ["rows_of names a table of a database, and this is a file"]),
])
def test_an_enrichment_that_cannot_be_is_told(changes: dict[str, Any], said: list[str]) -> None:
    assert enrich_problems(**changes) == said


def test_a_parquet_table_brings_its_own_columns() -> None:
    assert enrich_problems(table="prices.parquet", schema=None) == []
