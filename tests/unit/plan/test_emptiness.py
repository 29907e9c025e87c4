from __future__ import annotations

import pytest

from penstock.plan.emptiness import without_counting


@pytest.mark.parametrize(
    ("condition", "sooner"),
    [
        ("length(word) > 0", "octet_length(word) > 0"),
        ("LENGTH(word)<>0", "octet_length(word)<>0"),
        ("len ( trim(`a b`) ) == 0 or len(c) >= 0", "octet_length ( trim(`a b`) ) == 0 or octet_length(c) >= 0"),
        ("x = 1 AND NOT (character_length(word) <=> 0)", "x = 1 AND NOT (octet_length(word) <=> 0)"),
        ("not length(concat(a, ')')) > 0", "not octet_length(concat(a, ')')) > 0"),
    ],
)
def test_a_length_that_is_compared_with_zero_counts_no_characters(condition: str, sooner: str) -> None:
    assert without_counting(condition) == sooner


@pytest.mark.parametrize(
    "condition",
    [
        "length(word) > 1",
        "length(word) > 0.5",
        "length(word) > 0 + n",
        "length(word) > 0 = flag",
        "n - length(word) > 0",
        "length(word) + n > 0",
        "- length(word) < 0",
        "n between 1 and length(word) > 0",
        "word = 'length(word) > 0'",
        "`length`(word) > 0",
        "length > 0",
        "a.length(word) > 0",
        "0 < n",
        "length(word",
        "length(word) >",
        "length('word",
    ],
)
def test_any_other_condition_stays_as_it_is(condition: str) -> None:
    assert without_counting(condition) == condition
