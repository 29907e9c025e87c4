from __future__ import annotations

from penstock.topology.model import (
    Count,
    Dup,
    FrozenOptions,
    Operator,
    Route,
    RouteKind,
    Source,
    StreamRef,
    Topology,
    Uniq,
)
from penstock.topology.schema import parse_schema
from penstock.validation.columns import check_keys
from penstock.validation.schemas import stream_schemas

IN = (StreamRef("in"),)


def messages(operator: Operator, schema: str | None = "id int, user string, count int") -> list[str]:
    source = Source("in", "memory", FrozenOptions(), parse_schema(schema) if schema else None)
    topology = Topology("t", sources=(source,), operators=(operator,))
    return [problem.message for problem in check_keys(topology, stream_schemas(topology))]


def test_keys_that_are_columns_are_fine() -> None:
    assert messages(Uniq("o", IN, keys=("user", "id"))) == messages(Count("o", IN)) == []


def test_keys_must_be_columns() -> None:
    assert messages(Uniq("o", IN, keys=("usr",))) == ["operator 'o': no column 'usr': did you mean 'user'?"]
    assert messages(Count("o", IN, keys=("id", "usr"))) == [
        "operator 'o': no column 'usr': did you mean 'user'?"]


def test_a_key_that_is_also_routed_by_is_reported_once() -> None:
    routed = Uniq("o", IN, keys=("usr",), route=Route(RouteKind.HASH, ("usr",)))
    assert len(messages(routed)) == 1


def test_fields_of_a_hash_route_must_be_columns() -> None:
    assert messages(Dup("o", IN, route=Route(RouteKind.HASH, ("usr",)))) == [
        "operator 'o': no column 'usr': did you mean 'user'?"]


def test_keys_are_not_checked_when_the_input_is_not_known() -> None:
    assert messages(Uniq("o", IN, keys=("anything",)), schema=None) == []


def test_uniq_needs_keys_and_count_cannot_count_by_count() -> None:
    assert messages(Uniq("o", IN)) == ["operator 'o': uniq needs the columns that make the key"]
    assert messages(Count("o", IN, keys=("count",))) == [
        "operator 'o': its key and its count would both be named 'count'"]


def test_a_key_written_twice_is_a_problem() -> None:
    assert messages(Uniq("o", IN, keys=("id", "id"))) == ["operator 'o': the key 'id' is written twice"]
