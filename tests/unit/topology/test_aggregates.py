from __future__ import annotations

import pytest

from penstock.errors import TopologyError
from penstock.topology.aggregates import FUNCTIONS, Aggregate, parse_aggregate


@pytest.mark.parametrize(("text", "aggregate"), [
    ("count() as clicks", Aggregate("count", (), "clicks")),
    ("count(*) as clicks", Aggregate("count", (), "clicks")),
    ("COUNT( page ) AS pages", Aggregate("count", ("page",), "pages")),
    ("sum(a * (b + 1)) as `the sum`", Aggregate("sum", ("a * (b + 1)",), "the sum")),
    ("percentile(concat(a, ','), 0.95) as p", Aggregate("percentile", ("concat(a, ',')", "0.95"), "p")),
    ("top(3, score) as best", Aggregate("top", ("3", "score"), "best")),
])
def test_an_aggregate_is_a_function_its_arguments_and_a_name(text: str, aggregate: Aggregate) -> None:
    assert parse_aggregate(text) == aggregate


@pytest.mark.parametrize(("text", "message"), [
    ("clicks", "'clicks' computes nothing of many tuples"),
    ("sum(a) + 1 as b", "computes nothing of many tuples"),
    ("summ(a) as b", "no function of many tuples is called 'summ': did you mean 'sum'?"),
    ("mode(a) as b", "there are count, sum"),
    ("sum() as b", "write sum(x)"),
    ("sum(a, b) as c", "write sum(x)"),
    ("percentile(a) as b", "write percentile(x, p)"),
    ("percentile(a, 95) as b", "a number from 0 to 1"),
    ("percentile(a, p) as b", "a number from 0 to 1"),
    ("top(0, a) as b", "how many to keep, from 1 to 100,000"),
    ("top(2.5, a) as b", "how many to keep"),
    ("top(n, a) as b", "how many to keep"),
    ("top(3", "has a bracket without its partner; put it in quotes"),
    ("count()", "has no name; write 'count() as name'"),
])
def test_an_aggregate_that_cannot_be_says_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as error:
        parse_aggregate(text)
    assert message in str(error.value)


def test_the_value_and_the_number_are_told_apart() -> None:
    percentile, top = parse_aggregate("percentile(ms, 0.5) as p"), parse_aggregate("top(3, score) as best")
    assert (percentile.value, percentile.number) == ("ms", 0.5)
    assert (top.value, top.number) == ("score", 3)
    assert parse_aggregate("count() as n").value is None


def test_every_function_says_how_it_is_written() -> None:
    assert all(function.usage.startswith(f"{name}(") for name, function in FUNCTIONS.items())
