from __future__ import annotations

import pytest

from penstock.topology.model import (
    Explode,
    Filter,
    FrozenOptions,
    Operator,
    Select,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.schema import parse_schema
from penstock.validation.expressions import check_expressions
from penstock.validation.schemas import stream_schemas

SCHEMA = ("id int, user string, url string, price double, ok boolean, day date, at timestamp, "
          "tags array<string>, place struct<city:string,lat:double>, extra map<string,int>")
IN = (StreamRef("in"),)


def problems(operator: Operator, schema: str | None = SCHEMA) -> list[str]:
    source = Source("in", "memory", FrozenOptions(), parse_schema(schema) if schema else None)
    topology = Topology("t", sources=(source,), operators=(operator,))
    return [str(problem).removeprefix("operator 'o': ")
            for problem in check_expressions(topology, stream_schemas(topology))]


def filtered(condition: str, schema: str | None = SCHEMA) -> list[str]:
    return problems(Filter("o", IN, condition=condition), schema)


def selected(*columns: str) -> list[str]:
    return problems(Select("o", IN, columns=columns))


@pytest.mark.parametrize("condition", [
    "url = 'www.tecnico.ulisboa.pt'",
    "id > 3 and not ok",
    "id = '7'",
    "price >= id",
    "ok = 'true'",
    "day > '2024-01-01' and at < current_timestamp()",
    "day = date '2024-01-01'",
    "user in ('ann', 'bob') or user is null",
    "cast(user as int) > 5",
    "try_cast(user as double) < 2.5",
    "int(user) > 5",
    "id between 1 and 10",
    "array_contains(tags, 'x')",
    "exists(tags, t -> t = 'x')",
    "size(filter(tags, t -> length(t) > 3)) > 0",
    "place.city = 'Lisboa' and extra.a > 3 and extra['b'] = 1",
    "tags[0] like 'a%' and user rlike '^x'",
    "PLACE.CITY <=> User",
    "frobnicate(id) = 'x'",
    "timestampdiff(MONTH, at, current_timestamp()) > 3",
    "some_date_function(day, at) = 1",
    "length(user) + 1 > 5",
    "concat(user, '-', id) != url",
    "ok",
    "case when id > 3 then ok else false end",
    "`id` = 1",
    "a_function(user)",
    "user = 'it''s' and url = \"double\"",
    "id = -1",
    "if(ok, id, 0) = 1",
])
def test_good_conditions_have_no_problems(condition: str) -> None:
    assert filtered(condition) == []


@pytest.mark.parametrize(("condition", "said"), [
    ("id >", "something is missing at character 4, near '>'"),
    ("(id = 1", "')' is missing at character 7, after '1'"),
    ("id = 1)", "')' is unexpected at character 7"),
    ("url = 'x", "the quote ' at character 7 is never closed"),
    ("id = 1 && ok", "'&&' is unexpected at character 8"),
    ("id = 1\nand (ok", "')' is missing at line 2, character 6, after 'ok'"),
    ("id = 1, ok", "it must be one expression, without ',' outside brackets"),
    ("id from x", "it must be an expression alone, without 'from'"),
    ("id = 1; ok", "it must be one expression, without ';'"),
])
def test_syntax_errors_are_in_plain_words_with_their_place(condition: str, said: str) -> None:
    assert filtered(condition) == [f"'{condition}' is not a SQL expression: {said}"]


def test_a_condition_that_starts_with_a_statement_word_is_still_a_condition() -> None:
    assert filtered("comment = 'x' and load > 1", "comment string, load int") == []


def test_an_unknown_column_is_suggested_once() -> None:
    assert filtered("usr = 'x' or usr = 'y'") == ["no column 'usr': did you mean 'user'?"]


def test_a_column_like_no_other_lists_the_columns() -> None:
    assert filtered("xyzzy = 1", "id int, user string") == ["no column 'xyzzy' (it reads id, user)"]


def test_every_unknown_column_of_an_expression_is_reported() -> None:
    assert len(filtered("usr = 'x' and prise > 1")) == 2


def test_fields_of_structs_are_checked() -> None:
    assert filtered("place.town = 'x' or place.cty = 'x'") == [
        "'place' has no field 'town' (it has city, lat)", "'place' has no field 'cty': did you mean 'city'?"]
    assert filtered("user.name = 'x'") == ["'user' is string and has no field 'name'"]


@pytest.mark.parametrize(("condition", "said"), [
    ("id = 'abc'", "id is int and cannot be compared with 'abc' (compare it with a number)"),
    ("'abc' < price", "price is double and cannot be compared with 'abc' (compare it with a number)"),
    ("user > 5", "user is string and cannot be compared with 5, which is int "
                 "(write '5' in quotes, or cast(user as int))"),
    ("user = id", "user is string and cannot be compared with id, which is int (write cast(user as int))"),
    ("ok = 1", "ok is boolean and cannot be compared with 1, which is int"),
    ("ok = 'maybe'", "ok is boolean and cannot be compared with 'maybe' (compare it with true or false)"),
    ("day = 5", "day is date and cannot be compared with 5, which is int"),
    ("at > 'noon'", "at is timestamp and cannot be compared with 'noon' "
                    "(compare it with a date such as '2024-01-31')"),
    ("tags = 'x'", "tags is array<string> and cannot be compared with 'x'"),
    ("id in (1, 'two')", "id is int and cannot be compared with 'two' (compare it with a number)"),
    ("id between 1 and 'z'", "id is int and cannot be compared with 'z' (compare it with a number)"),
    ("id and ok", "'and' needs conditions, and id is a number (compare it with something)"),
    ("cast(user as int) = 'x'", "cast(user as int) is int and cannot be compared with 'x' "
                                "(compare it with a number)"),
])
def test_comparing_the_wrong_types_is_a_problem(condition: str, said: str) -> None:
    assert filtered(condition) == [said]


@pytest.mark.parametrize(("condition", "type_"), [
    ("user", "string"), ("id + 1", "numeric"), ("tags", "array<string>")])
def test_a_condition_must_be_true_or_false(condition: str, type_: str) -> None:
    assert filtered(condition) == [
        f"the condition '{condition}' is {type_}, not true or false (compare it with something)"]


def test_a_condition_takes_no_name() -> None:
    assert filtered("id = 1 as first") == ["a condition takes no name: 'id = 1 as first' (remove 'first')"]


@pytest.mark.parametrize("expression", ["count(*) > 1", "max(id) = 3", "row_number() over (order by id) = 1",
                                        "sum(price) over (partition by user) > 1"])
def test_aggregates_and_windows_point_to_count(expression: str) -> None:
    [said] = filtered(expression)
    assert "looks at many tuples, and filter sees one at a time" in said
    assert "use a count operator" in said
    assert len(selected(f"{expression} as x")) == 1


def test_a_query_within_a_condition_is_refused() -> None:
    assert filtered("id in (select id from other)") == [
        "queries within an expression are not possible (use operators for them)"]


def test_explode_within_a_select_points_to_the_operator() -> None:
    assert selected("explode(tags) as tag") == [
        "'EXPLODE(tags)' makes many tuples of one (use an explode operator)"]


def test_nothing_is_said_of_columns_when_the_input_is_not_known() -> None:
    assert filtered("anything = 'x'", schema=None) == []
    assert filtered("anything >", schema=None) != []


def test_a_missing_condition_is_a_problem() -> None:
    assert len(filtered("")) == len(filtered("  ")) == 1


def test_a_computed_column_needs_a_name() -> None:
    assert selected("id", "id + 1") == ["the column 'id + 1' has no name (write 'id + 1 as name')"]


def test_plain_columns_stars_and_named_expressions_need_nothing_more() -> None:
    assert selected("*", "place.city", "place.*", "id + 1 as next") == []


def test_a_select_may_not_make_a_column_twice() -> None:
    assert selected("id", "price as ID") == ["select makes two columns 'id' (rename one with `as`)"]
    assert selected("*", "upper(user) as user") == ["select makes two columns 'user' (rename one with `as`)"]


def test_names_that_begin_with_two_underscores_are_taken() -> None:
    said = ["column '__x': names that begin with '__' belong to Penstock (rename it)"]
    assert selected("id as __x") == exploded("tags", alias="__x") == said


def test_every_column_of_a_select_is_checked() -> None:
    assert len(selected("usr", "prise as p", "id >")) == 3


def test_an_empty_select_is_a_problem() -> None:
    assert len(selected()) == 1


def exploded(expression: str, alias: str = "item") -> list[str]:
    return problems(Explode("o", IN, expression=expression, alias=alias))


def test_explode_takes_arrays_and_what_may_be_one() -> None:
    assert exploded("tags") == exploded("split(url, '/')") == exploded("mystery(url)") == []


@pytest.mark.parametrize(("expression", "said"), [
    ("user", "explode needs an array, and 'user' is string (use split(user, ' '))"),
    ("id", "explode needs an array, and 'id' is int (only arrays can be exploded)"),
    ("extra", "explode needs an array, and 'extra' is map<string,int> (only arrays can be exploded)"),
    ("tgas", "no column 'tgas': did you mean 'tags'?"),
    ("explode(tags)", "'EXPLODE(tags)' makes many tuples of one (write `explode: tags`)"),
    ("tags as tag", "explode names its column with `as`, not within 'tags as tag' "
                    "(write `explode: tags` and `as: tag`)"),
])
def test_explode_of_anything_else_is_a_problem(expression: str, said: str) -> None:
    assert exploded(expression) == [said]


def test_the_exploded_column_needs_a_new_name() -> None:
    assert exploded("tags", alias="user") == [
        "explode adds a column 'user', and there is one already (choose another name with `as`)"]
