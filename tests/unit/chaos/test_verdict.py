from __future__ import annotations

import datetime
import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.verdict import Verdict, breaches, compare, row_text
from penstock.topology.model import Delivery

ROWS = st.lists(st.sampled_from("abcde"), max_size=12)

LOST = Verdict("out", 10, lost=2)
DOUBLED = Verdict("out", 10, duplicated=1)
STRANGE = Verdict("out", 10, unexpected=3)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_same_rows_in_another_order_are_neither_lost_nor_doubled(rows: list[str], chance: object) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    verdict = compare("out", rows, shuffled)
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (0, 0, 0)
    assert verdict.reordered == sum(one != other for one, other in zip(rows, shuffled, strict=True))


@given(ROWS, ROWS)
def test_what_is_missing_and_what_is_more_add_up(reference: list[str], disturbed: list[str]) -> None:
    verdict = compare("out", reference, disturbed)
    assert len(reference) - verdict.lost + verdict.duplicated + verdict.unexpected == len(disturbed)


def test_extra_copies_are_doubled_and_rows_never_seen_are_unexpected() -> None:
    verdict = compare("out", ["a", "b", "b"], ["a", "a", "b", "x"])
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (1, 1, 1)
    assert verdict.examples == ("lost: b", "duplicated: a", "unexpected: x")


def test_order_is_compared_among_the_rows_that_both_have() -> None:
    assert compare("out", ["a", "b", "c"], ["a", "a", "b", "c"]).reordered == 0
    assert compare("out", ["a", "b", "c", "d"], ["a", "c", "d"]).reordered == 0
    assert compare("out", ["a", "b", "c"], ["c", "b", "a"]).reordered == 2


def test_a_verdict_says_so_in_one_line() -> None:
    assert str(Verdict("out", 10)) == "lost 0, duplicated 0, reordered 0"
    assert str(STRANGE) == "lost 0, duplicated 0, unexpected 3, reordered 0"


def test_rows_are_the_same_text_whatever_the_order_of_their_columns() -> None:
    assert row_text({"a": 1, "b": [1, None]}) == row_text({"b": [1, None], "a": 1})
    assert row_text({"a": 1}) != row_text({"a": "1"})
    moment = {"at": datetime.datetime(2026, 1, 2), "sum": decimal.Decimal("1.50"), "raw": b"\x00"}
    assert row_text(moment) == row_text(dict(moment))


def test_ignored_columns_make_no_difference() -> None:
    assert row_text({"id": 1, "at": 5}, {"at"}) == row_text({"id": 1, "at": 6}, {"at"})


UNKNOWN = ["sink 'out': 3 rows were delivered that the undisturbed run does not have"]


@pytest.mark.parametrize(("delivery", "verdict", "said"), [
    (Delivery.EXACTLY_ONCE, Verdict("out", 10, reordered=4), []),
    (Delivery.EXACTLY_ONCE, LOST, ["sink 'out': exactly-once was promised, and 2 rows were lost"]),
    (Delivery.EXACTLY_ONCE, DOUBLED, ["sink 'out': exactly-once was promised, and 1 row was doubled"]),
    (Delivery.EXACTLY_ONCE, STRANGE, UNKNOWN),
    (Delivery.AT_LEAST_ONCE, LOST, ["sink 'out': at-least-once was promised, and 2 rows were lost"]),
    (Delivery.AT_LEAST_ONCE, DOUBLED, []),
    (Delivery.AT_LEAST_ONCE, STRANGE, UNKNOWN),
    (Delivery.AT_MOST_ONCE, LOST, []),
    (Delivery.AT_MOST_ONCE, DOUBLED, ["sink 'out': at-most-once was promised, and 1 row was doubled"]),
    (Delivery.AT_MOST_ONCE, STRANGE, UNKNOWN),
])  # fmt: skip
def test_each_guarantee_is_judged_by_what_it_promises(delivery: Delivery, verdict: Verdict, said: list[str]) -> None:
    assert breaches(delivery, [verdict]) == said


def test_everything_that_is_broken_is_told() -> None:
    assert len(breaches(Delivery.EXACTLY_ONCE, [Verdict("a", 1, 1, 1, 1), LOST])) == 4
