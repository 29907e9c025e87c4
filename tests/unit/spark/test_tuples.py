from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.spark.tuples import as_values, many, rows_of

BATCH = pa.RecordBatch.from_pydict({"user": ["ann", "bob"], "page": [1, None], "hidden": [0, 0]})


def test_a_field_is_found_by_attribute_by_name_and_by_number() -> None:
    first, second = rows_of(BATCH, ("user", "page"))
    assert (first.user, first["user"], first[0]) == ("ann", "ann", "ann")
    assert second.page is None
    assert repr(first) == "(user='ann', page=1)"


def test_a_column_whose_name_is_no_python_name_is_found_by_its_name() -> None:
    batch = pa.RecordBatch.from_pydict({"class": ["a"], "user id": [7]})
    (row,) = rows_of(batch, ("class", "user id"))
    assert row["class"] == "a"
    assert row["user id"] == 7


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, []),
        (("a", 1), [("a", 1)]),
        ({"x": 1}, [{"x": 1}]),
        ("text", ["text"]),
        (5, [5]),
        ([("a", 1), ("b", 2)], [("a", 1), ("b", 2)]),
        ((pair for pair in [("a", 1)]), [("a", 1)]),
        ([], []),
    ],
)
def test_what_a_function_returns_is_none_one_or_many(returned: object, expected: list[object]) -> None:
    assert list(many(returned)) == expected


def test_values_are_taken_by_name_or_by_position() -> None:
    assert as_values({"b": 2, "a": 1}, ("a", "b")) == (1, 2)
    assert as_values([1, 2], ("a", "b")) == (1, 2)
    assert as_values("only", ("a",)) == ("only",)


@pytest.mark.parametrize(
    ("emitted", "said"),
    [
        ((1,), "1 values for 2 columns"),
        ({"a": 1}, "no b"),
        ({"a": 1, "b": 2, "c": 3}, "unknown c"),
        ("text", "'text' is one value, but there are 2 columns"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_what_is_wrong(emitted: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        as_values(emitted, ("a", "b"))
