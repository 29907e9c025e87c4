from __future__ import annotations

import pytest

from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Explode,
    Filter,
    FrozenOptions,
    Operator,
    Select,
    Source,
    StreamRef,
    Topology,
    Union,
    Uniq,
)
from penstock.topology.schema import Schema, parse_schema
from penstock.validation.schemas import check_inputs_agree, stream_schemas

SCHEMA = "id int, user string, tags array<string>, at timestamp, place struct<city:string,lat:double>"
IN = (StreamRef("in"),)


def source(name: str = "in", schema: str | None = SCHEMA) -> Source:
    return Source(name, "memory", FrozenOptions(), parse_schema(schema) if schema else None)


def schema_after(*operators: Operator, schema: str | None = SCHEMA) -> Schema | None:
    topology = Topology("t", sources=(source(schema=schema),), operators=operators)
    return stream_schemas(topology)[StreamRef(operators[-1].name)]


@pytest.mark.parametrize("operator", [
    Filter("o", IN, condition="id > 1"), Dup("o", IN), Uniq("o", IN, keys=("user",)), Union("o", IN)])
def test_operators_that_pass_tuples_on_keep_the_columns(operator: Operator) -> None:
    assert schema_after(operator) == parse_schema(SCHEMA)


@pytest.mark.parametrize(("column", "expected"), [
    ("id", "id int"),
    ("ID", "ID int"),
    ("id as number", "number int"),
    ("place.city", "city string"),
    ("cast(id as bigint) as n", "n bigint"),
    ("cast(user as array<struct<a:int>>) as n", "n array<struct<a:int>>"),
    ("upper(user) as u", "u string"),
    ("id + 1 as next", "next numeric"),
    ("id > 3 and user = 'x' as big", "big boolean"),
    ("split(user, ' ') as words", "words array<string>"),
    ("tags[0] as first", "first string"),
    ("case when id > 1 then 'a' else 'b' end as c", "c string"),
    ("coalesce(user, null) as c", "c string"),
    ("user + 1 as odd", "odd unknown"),
    ("some_function(id) as f", "f unknown"),
    ("missing as m", "m unknown"),
])
def test_a_select_types_what_is_sure(column: str, expected: str) -> None:
    schema = schema_after(Select("o", IN, columns=(column,)))
    assert str(schema) == expected


def test_a_star_stands_for_all_columns() -> None:
    schema = schema_after(Select("o", IN, columns=("*", "id + 1 as next")))
    assert schema is not None
    assert schema.names == ("id", "user", "tags", "at", "place", "next")


def test_the_star_of_a_struct_stands_for_its_fields() -> None:
    assert str(schema_after(Select("o", IN, columns=("place.*",)))) == "city string, lat double"


def test_explode_adds_the_element() -> None:
    explode = Explode("o", IN, expression="tags", alias="tag")
    schema = schema_after(explode, schema="id int, tags array<string>")
    assert str(schema) == "id int, tags array<string>, tag string"


def test_count_gives_keys_and_count() -> None:
    assert str(schema_after(Count("o", IN, keys=("user",)))) == "user string, count bigint"


def test_custom_gives_what_it_emits_on_each_port() -> None:
    emits = (("a", parse_schema("x int")), ("b", parse_schema("y string")))
    topology = Topology("t", sources=(source(),), operators=(Custom("o", IN, code="m:f", emits=emits),))
    schemas = stream_schemas(topology)
    assert (schemas[StreamRef("o", "a")], schemas[StreamRef("o", "b")]) == (emits[0][1], emits[1][1])


def test_nothing_is_known_behind_a_source_without_schema_until_a_select_names_columns() -> None:
    assert schema_after(Dup("o", IN), schema=None) is None
    named = schema_after(Dup("o", IN), Select("s", (StreamRef("o"),), columns=("a", "cast(b as int) as c")),
                         schema=None)
    assert str(named) == "a unknown, c int"


def test_nothing_is_known_behind_an_unknown_stream_or_a_broken_select() -> None:
    assert schema_after(Dup("o", (StreamRef("nowhere"),))) is None
    assert schema_after(Select("o", IN, columns=("id +",))) is None
    assert schema_after(Select("o", IN, columns=("id + 1",))) is None


def disagreements(first: str, second: str) -> list[str]:
    topology = Topology("t", sources=(source("a", first), source("b", second)),
                        operators=(Dup("both", (StreamRef("a"), StreamRef("b"))),))
    return [problem.message for problem in check_inputs_agree(topology, stream_schemas(topology))]


@pytest.mark.parametrize(("second", "difference"), [
    ("id int, name string", "column 2 is 'user string' in 'a' and 'name string' in 'b'"),
    ("id bigint, user string", "column 1 is 'id int' in 'a' and 'id bigint' in 'b'"),
    ("id int", "column 2 is 'user string' in 'a' and missing in 'b'"),
])
def test_several_inputs_must_have_the_same_columns(second: str, difference: str) -> None:
    assert disagreements("id int, user string", second) == [
        f"operator 'both' merges streams with different columns: {difference}"]


def test_equal_inputs_agree() -> None:
    assert disagreements("id int, user string", "id int, user string") == []


def test_a_computed_number_agrees_with_any_number_but_not_with_text() -> None:
    select = Select("s", IN, columns=("id + 1 as n",))
    for schema, problems in (("n bigint", 0), ("n string", 1)):
        topology = Topology("t", sources=(source(), source("b", schema)),
                            operators=(select, Union("u", (StreamRef("s"), StreamRef("b")))))
        assert len(list(check_inputs_agree(topology, stream_schemas(topology)))) == problems


def test_inputs_that_disagree_make_nothing_known_behind_them() -> None:
    topology = Topology("t", sources=(source(), source("b", "x int")),
                        operators=(Union("u", (StreamRef("in"), StreamRef("b"))),))
    assert stream_schemas(topology)[StreamRef("u")] is None
