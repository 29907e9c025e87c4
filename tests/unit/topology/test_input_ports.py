from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import TopologyError
from penstock.topology.builder import Stream
from penstock.topology.catalogue import Catalogue
from penstock.topology.enrichment import Enrich
from penstock.topology.input_ports import Inputs, to_inputs, write_inputs
from penstock.topology.join import Join, JoinedColumn, joined_columns
from penstock.topology.json_schema import json_schema
from penstock.topology.model import Custom, StreamRef, Topology
from penstock.topology.yaml_reader import read_topology_text
from penstock.topology.yaml_writer import write_topology

JOINED = """\
topology: shop
sources:
  orders:   {file: orders.csv, schema: "id int, ordered_at timestamp"}
  payments: {file: payments.csv, schema: "order_id int, paid_at timestamp"}
operators:
  paid:   {from: {orders: orders, payments: payments}, join: "orders.id = payments.order_id", within: 1 hour,
           on: {orders: ordered_at, payments: paid_at}, kind: left, lateness: 1 minute}
  priced: {from: orders, enrich: prices.csv, schema: "id int, price double", by: id, kind: left, header: true}
  match:  {from: {orders: [orders, priced], payments: payments}, custom: "match:Match", emits: "id int",
           access: synchronous}
sinks:
  out: {from: paid, file: out.jsonl}
"""


def orders() -> Stream:
    return Topology("shop").source("orders", file="orders.csv", schema="id int, ordered_at timestamp")


def payments() -> Stream:
    return Topology("shop").source("payments", file="payments.csv", schema="order_id int, paid_at timestamp")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a", Inputs((StreamRef("a"),))),
        (["a", "b.odd"], Inputs((StreamRef("a"), StreamRef("b", "odd")))),
        ({"x": "a", "y": "b.odd"}, Inputs((StreamRef("a"), StreamRef("b", "odd")), ("x", "y"))),
        ({"x": ["a", "b"], "y": "c"}, Inputs((StreamRef("a"), StreamRef("b"), StreamRef("c")), ("x", "x", "y"))),
    ],
)
def test_from_is_a_stream_a_list_or_ports_and_is_written_as_it_was_read(written: object, expected: Inputs) -> None:
    assert to_inputs(written) == expected
    operator = Custom("o", expected.streams, input_ports=expected.ports, code="m:f")
    assert write_inputs(operator) == written


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "no port"),
        ({"x y": "a"}, "cannot be a name"),
        ({"x": 7}, "port 'x': 7 is not a stream"),
        ({"x": []}, "port 'x'"),
    ],
)
def test_what_is_no_port_is_refused(written: object, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        to_inputs(written)


def test_a_port_knows_its_streams() -> None:
    refs = (StreamRef("a"), StreamRef("b"), StreamRef("c"))
    operator = Custom("o", refs, input_ports=("x", "x", "y"), code="m:f")
    assert operator.by_port() == {"x": (StreamRef("a"), StreamRef("b")), "y": (StreamRef("c"),)}
    assert Custom("o", refs, code="m:f").by_port() == {}


def test_joins_enrichments_and_ports_survive_being_written(read: Callable[..., tuple[Topology, list[str]]],
                                                          catalogue: Catalogue) -> None:
    topology, problems = read(JOINED)
    assert problems == []
    again, problems_again = read_topology_text(write_topology(topology), "t.yaml", Path(), catalogue, {})
    assert (again, problems_again) == (topology, [])
    paid = topology.node("paid")
    assert isinstance(paid, Join)
    assert (paid.within, paid.lateness, paid.keeps_left) == (3600.0, 60.0, True)
    assert [paid.time_column(port) for port in paid.by_port()] == ["ordered_at", "paid_at"]
    priced = topology.node("priced")
    assert isinstance(priced, Enrich)
    assert priced.added(["id", "price"]) == ["price"]


def test_the_builder_makes_what_the_yaml_file_says(read: Callable[..., tuple[Topology, list[str]]]) -> None:
    topology, _ = read(JOINED)
    built = orders().join(payments(), "orders.id = payments.order_id", within="1 hour", kind="left",
                          on={"orders": "ordered_at", "payments": "paid_at"}, lateness="1 minute", name="paid")
    assert built.topology.node("paid") == topology.node("paid")
    enriched = orders().enrich("prices.csv", schema="id int, price double", by="id", kind="left", header=True,
                               name="priced")
    assert enriched.topology.node("priced") == topology.node("priced")


def test_the_builder_names_the_ports_of_custom_code() -> None:
    both = {"orders": orders(), "payments": payments()}
    match = both["orders"].custom("m:Match", emits="id int", ports=both, access="synchronous").topology.operators[0]
    assert isinstance(match, Custom)
    assert match.by_port() == {"orders": (StreamRef("orders"),), "payments": (StreamRef("payments"),)}
    assert match.synchronous


def test_the_builder_refuses_ports_without_the_stream_itself_and_two_of_one_name() -> None:
    with pytest.raises(TopologyError, match="'orders' itself is none of the ports payments"):
        orders().custom("m:f", ports={"payments": payments()})
    with pytest.raises(TopologyError, match="both ports would be called 'orders'"):
        orders().join(orders(), "orders.id = orders.id", within=1)


def test_a_column_that_both_have_is_named_after_its_port() -> None:
    assert joined_columns({"a": ["id", "Amount"], "b": ["amount", "at"]}) == [
        JoinedColumn("a", "id", "id"), JoinedColumn("a", "Amount", "a_Amount"),
        JoinedColumn("b", "amount", "b_amount"), JoinedColumn("b", "at", "at")]


def test_only_operators_with_ports_offer_them_in_the_json_schema(catalogue: Catalogue) -> None:
    definitions = json_schema(catalogue)["$defs"]
    offering = [name for name, kind in definitions.items() if name.startswith("operator.")
                and any(each.get("type") == "object" for each in kind["properties"]["from"]["anyOf"])]
    assert offering == ["operator.join", "operator.custom"]
