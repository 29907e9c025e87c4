from __future__ import annotations

import pytest

from penstock.plan.description import Node, Role, brief_of, counted, role_of, route_label
from penstock.topology.model import (
    OPERATOR_KINDS,
    Count,
    Custom,
    Dup,
    Explode,
    Filter,
    FrozenOptions,
    Route,
    RouteKind,
    Select,
    Sink,
    Source,
    StreamRef,
    Union,
    Uniq,
)
from penstock.topology.schema import parse_schema

LINES = (StreamRef("lines"),)


@pytest.mark.parametrize(("node", "brief"), [
    (Source("s", "file", FrozenOptions(file="x.csv"), parse_schema("id int")), "file x.csv (id int)"),
    (Source("s", "generator", FrozenOptions(generator={"id": "n", "at": "now()"})), "generator id, at"),
    (Source("s", "file", FrozenOptions(file=["a.csv", "b.csv"])), "file a.csv, b.csv"),
    (Sink("s", StreamRef("lines"), "console", FrozenOptions()), "console"),
    (Filter("f", LINES, condition="a\n  > 1"), "filter a > 1"),
    (Select("f", LINES, columns=("a", "b + 1 as c")), "select a, b + 1 as c"),
    (Explode("f", LINES, expression="split(line, ' ')", alias="word"), "explode split(line, ' ') as word"),
    (Dup("f", LINES), "dup"),
    (Uniq("f", LINES, keys=("a", "b")), "uniq a, b"),
    (Count("f", LINES), "count"),
    (Count("f", LINES, keys=("a",), emit="each"), "count per a, each"),
    (Union("f", LINES), "union"),
    (Custom("f", LINES, code="m:f"), "m:f"),
    (Custom("f", LINES, code="m:f", emits=(("", parse_schema("id int")),)), "m:f → id int"),
    (Custom("f", LINES, code="m:B", emits=(("a", parse_schema("x int")), ("b", parse_schema("y int")))),
     "m:B → a: x int; b: y int"),
])
def test_a_node_is_described_in_one_line(node: Node, brief: str) -> None:
    assert brief_of(node) == brief


def test_only_custom_operators_enter_python_and_state_is_told_apart() -> None:
    roles = {kind.keyword: role_of(kind("f", LINES)) for kind in OPERATOR_KINDS}

    assert [keyword for keyword, role in roles.items() if role is Role.PYTHON] == ["custom"]
    stateful = sorted(keyword for keyword, role in roles.items() if role is Role.STATEFUL)
    assert stateful == ["count", "join", "uniq", "window"]


def test_a_route_is_labelled_with_its_fields_and_instances() -> None:
    assert route_label(Route(RouteKind.HASH, ("a", "b")), 3) == "hash(a, b) ×3"
    assert route_label(Route(RouteKind.SHUFFLE), None) == "shuffle"


def test_one_is_singular() -> None:
    assert (counted(1, "sink"), counted(2, "sink"), counted(0, "sink")) == ("1 sink", "2 sinks", "0 sinks")


@pytest.mark.parametrize(("address", "shown"), [
    ("postgresql://ann:s3cret@db.example/sales", "sql postgresql://ann:***@db.example/sales"),
    ("postgresql+psycopg://ann:p%40ss@db.example:5432/sales", "sql postgresql+psycopg://ann:***@db.example:5432/sales"),
    ("postgresql://:s3cret@/sales", "sql postgresql://:***@/sales"),
    ("postgresql://ann@db.example:5432/sales", "sql postgresql://ann@db.example:5432/sales"),
    ("sqlite:///out/results.db", "sql sqlite:///out/results.db"),
])
def test_the_password_of_an_address_is_not_shown(address: str, shown: str) -> None:
    assert brief_of(Sink("s", StreamRef("lines"), "sql", FrozenOptions(sql=address))) == shown


def test_options_beside_the_argument_are_not_shown() -> None:
    sink = Sink("s", StreamRef("lines"), "sql", FrozenOptions(sql="sqlite:///a.db", table="t", token="s3cret"))
    assert brief_of(sink) == "sql sqlite:///a.db"
