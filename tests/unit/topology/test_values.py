from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import TopologyError
from penstock.topology import values
from penstock.topology.schema import parse_schema


@pytest.mark.parametrize(("value", "expressions"), [
    ("user, upper(url) as url", ("user", "upper(url) as url")),
    ("a < b as x, concat(c, ',') as y", ("a < b as x", "concat(c, ',') as y")),
    (r"'it\'s, ' || a, b", (r"'it\'s, ' || a", "b")),
    (["user", " id + 1 as id "], ("user", "id + 1 as id")),
    ({"url": "upper(url)", "user": "user", "two words": "1"},
     ("upper(url) as url", "user", "1 as `two words`")),
])
def test_expressions_are_one_text_a_list_or_a_mapping(value: object, expressions: tuple[str, ...]) -> None:
    assert values.to_expressions(value) == expressions


@pytest.mark.parametrize(("value", "columns"), [
    (None, ()), ("a", ("a",)), ("a, `b,c`", ("a", "b,c")), (["a", "b,c"], ("a", "b,c")),
])
def test_columns_are_one_text_or_a_list(value: object, columns: tuple[str, ...]) -> None:
    assert values.to_columns(value) == columns


@pytest.mark.parametrize(("value", "seconds"), [
    (2, 2.0), (0.5, 0.5), ("500ms", 0.5), ("2s", 2.0), ("1.5 m", 90.0), ("1h", 3600.0),
])
def test_a_duration_is_seconds_or_has_a_unit(value: object, seconds: float) -> None:
    assert values.to_seconds(value) == pytest.approx(seconds)


def test_what_an_operator_emits_is_a_schema_or_one_for_each_port() -> None:
    schema = parse_schema("a int")
    assert values.to_emits("a int") == values.to_emits(schema) == (("", schema),)
    assert values.to_emits({"good": "a int", "bad": schema}) == (("good", schema), ("bad", schema))


@pytest.mark.parametrize(("conversion", "value", "message"), [
    (values.to_columns, "a, a", "column 'a' is named twice"),
    (values.to_columns, "a,,b", "an empty column name"),
    (values.to_columns, 3, "3 is neither text nor a list of column names"),
    (values.to_expressions, [], "an empty expression"),
    (values.to_expressions, {}, "{} is neither text nor a list of expressions"),
    (values.to_seconds, "5 weeks", "'5 weeks' is not a duration"),
    (values.to_seconds, -1, "negative"),
    (values.to_integer, True, "true is not a whole number"),
    (values.to_integer, "4", "'4' is not a whole number"),
    (values.to_number, float("nan"), "nan is not a number"),
    (values.to_boolean, "yes", "'yes' is not true or false"),
    (values.to_emits, {"good": "a in"}, "port 'good': unknown type 'in'"),
    (values.to_emits, {}, "no port"),
    (values.to_code, "reach.followers", "write module:function"),
    (values.to_stream, "a.b.c", "write a name, or name.port"),
    (values.to_streams, [], "nor a list of streams"),
    (values.check_name, "two words", "use letters, digits, - and _"),
    (values.check_name, "x" * 101, "too long for a name: it has 101 characters, and 100 are the most"),
])
def test_a_wrong_value_is_named_in_the_error(conversion: Any, value: object, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        conversion(value)
    assert message in str(caught.value)
