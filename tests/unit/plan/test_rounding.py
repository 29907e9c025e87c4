from __future__ import annotations

import pytest

from penstock.plan.graph import Apply, Exchange, Port, Step
from penstock.plan.rounding import may_be_rounded
from penstock.topology.join import Join
from penstock.topology.model import (
    Count,
    Custom,
    Explode,
    Filter,
    Operator,
    Route,
    RouteKind,
    Select,
    StreamRef,
)
from penstock.topology.window import Window, parse_span

NONE: frozenset[str] = frozenset()
TOTAL = frozenset({"total"})
FROM = (StreamRef("in"),)


def step(operator: Operator) -> Step:
    return Apply("here", "before", operator)


def window(*compute: str) -> Step:
    return step(Window("w", FROM, span=parse_span("tumbling(1 minute)"), keys=("key",), compute=compute))


@pytest.mark.parametrize(("compute", "given", "rounded"), [
    ("sum(price) as x", NONE, True),
    ("avg(price) as x", NONE, True),
    ("stddev(price) as x", NONE, True),
    ("max(price) as x", NONE, False),
    ("percentile(price, 0.5) as x", NONE, False),
    ("last(price) as x", NONE, False),
    ("max(total) as x", TOTAL, True),
    ("max(price) as x", TOTAL, False),
    ("top(3, price) as x", TOTAL, True),
])  # fmt: skip
def test_what_a_window_adds_up_may_be_rounded(compute: str, given: frozenset[str], rounded: bool) -> None:
    assert may_be_rounded(window("count() as n", compute), "x", given) is rounded


def test_keys_of_a_window_are_what_they_were() -> None:
    assert not may_be_rounded(window("sum(price) as x"), "key", NONE)
    assert may_be_rounded(window("sum(price) as x"), "key", frozenset({"key"}))


def test_what_is_made_of_such_a_column_is_such_a_one() -> None:
    select = step(Select("s", FROM, columns=("*", "Total / 2 as half", "price * 2 as twice")))
    assert may_be_rounded(select, "half", TOTAL)
    assert may_be_rounded(select, "total", TOTAL)
    assert not may_be_rounded(select, "twice", TOTAL)
    explode = step(Explode("e", FROM, expression="array(total, 1.0)", alias="each"))
    assert may_be_rounded(explode, "each", TOTAL)
    assert not may_be_rounded(explode, "price", TOTAL)


def test_custom_code_is_exact_unless_what_it_is_given_is_not() -> None:
    own = step(Custom("own", FROM, code="own:code"))
    assert not may_be_rounded(own, "any", NONE)
    assert may_be_rounded(own, "any", TOTAL)
    assert may_be_rounded(Port("own.good", "own", "good"), "any", TOTAL)


def test_a_join_has_the_columns_of_both_perhaps_by_another_name() -> None:
    join = step(Join("j", FROM, condition="orders.id = payments.id", within=1.0, input_ports=("orders", "payments")))
    assert may_be_rounded(join, "orders_total", TOTAL)
    assert may_be_rounded(join, "total", TOTAL)
    assert not may_be_rounded(join, "price", TOTAL)


@pytest.mark.parametrize("passing", [
    step(Filter("f", FROM, condition="total > 1")),
    step(Count("c", FROM, keys=("total",))),
    Exchange("x", "before", Route(RouteKind.SHUFFLE)),
])  # fmt: skip
def test_all_others_pass_columns_on(passing: Step) -> None:
    assert may_be_rounded(passing, "total", TOTAL)
    assert not may_be_rounded(passing, "price", TOTAL)
