from __future__ import annotations

from typing import Any

import pytest

from penstock.topology.model import Count, FrozenOptions, Operator, Select, Source, StreamRef, Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import parse_schema
from penstock.topology.window import Window, parse_span
from penstock.validation.schemas import stream_schemas
from penstock.validation.windows import check_windows

SCHEMA = "user string, at timestamp, day date, sent bigint, amount double, pages map<string,int>, price decimal(10,2)"

EMITS = (("", parse_schema("user string, n int")),)


def window(name: str = "w", read: str = "clicks", span: str = "tumbling(1 minute)", **options: Any) -> Window:
    given = {"on": "at", "compute": ("count() as n",), **options}
    return Window(name, (StreamRef(read),), span=parse_span(span), **given)


def topology(*operators: Operator) -> Topology:
    source = Source("clicks", "file", FrozenOptions(file="x.csv"), parse_schema(SCHEMA))
    return Topology("t", sources=(source,), operators=operators)


def problems(*operators: Operator) -> list[Problem]:
    whole = topology(*operators)
    return list(check_windows(whole, stream_schemas(whole)))


def message(*operators: Operator) -> str:
    (problem,) = problems(*operators)
    return f"{problem.message}; {problem.hint}"


@pytest.mark.parametrize("options", [
    {}, {"on": "day"}, {"on": None}, {"span": "sliding(10 minutes, 1 minute)"}, {"span": "session(5 minutes)"},
    {"keys": ("user",), "lateness": 30.0}, {"emit": "changes"}, {"emit": "changes", "late": "update"},
    {"emit": "every 5 epochs"}, {"emit": "every 5 epochs", "late": "update"},
    {"late": "dead-letter"}, {"late": "dead-letter", "emit": "changes"},
    {"span": "tumbling(100 tuples)", "on": None},
    {"span": "sliding(9 tuples, 3 tuples)", "on": None, "keys": ("user",)},
    {"compute": ("sum(amount * 2) as total", "top(3, amount) as best", "percentile(sent, 0.5) as p",
                 "collect(user) as users", "first(at) as began", "count(user) as users_named")},
])
def test_a_window_that_can_be_run_has_no_problems(options: dict[str, Any]) -> None:
    assert problems(window(**options)) == []


@pytest.mark.parametrize(("options", "expected"), [
    ({"on": "att"}, "no column 'att'"),
    ({"on": "user"}, "on: 'user' is string, not a time; make it one with a select before it: cast(user as timestamp)"),
    ({"on": "sent"}, "on: 'sent' is bigint, not a time; make it one with a select before it: timestamp_millis(sent)"),
    ({"on": None, "lateness": 5.0}, "lateness has no meaning without `on`"),
    ({"lateness": 1e12}, "is impossible"),
    ({"span": "tumbling(4000 days)"}, "is absurd"),
    ({"span": "sliding(1 hour, 1s)"}, "every tuple is in 3,600 windows"),
    ({"span": "session(5s)", "emit": "changes"}, "a session can only be emitted when it is closed"),
    ({"keys": ("amount",), "emit": "every 5 epochs"}, "is double, which makes no key of windows that wait"),
    ({"late": "update"}, "cannot be updated by late tuples; add `emit: changes`"),
    ({"on": None, "late": "dead-letter"}, "`late: dead-letter` has no meaning without `on`"),
    ({"span": "tumbling(9 tuples)"}, "`on` has no meaning for tumbling(9 tuples)"),
    ({"span": "tumbling(9 tuples)", "on": None, "lateness": 5.0}, "`lateness` has no meaning for tumbling(9 tuples)"),
    ({"span": "tumbling(9 tuples)", "on": None, "late": "dead-letter"}, "`late` has no meaning for tumbling(9 tuples)"),
    ({"span": "tumbling(9 tuples)", "on": None, "emit": "changes"}, "is emitted once, when it is full; remove `emit"),
    ({"span": "tumbling(9 tuples)", "on": None, "keys": ("amount",)}, "'amount' is double, which makes no key"),
    ({"span": "tumbling(2000000 tuples)", "on": None}, "give at most 1,000,000 tuples"),
    ({"span": "sliding(5000 tuples, 1 tuple)", "on": None}, "every tuple is in 5,000 windows"),
    ({"span": "tumbling(9 tuples)", "on": None, "compute": ("count() as window_last",)}, "two columns 'window_last'"),
    ({"compute": None}, "what to compute of each window is missing"),
    ({"compute": ("sum(amuont) as total",)}, "no column 'amuont'"),
    ({"compute": ("sum(user) as total",)}, "sum needs numbers, and 'user' is string"),
    ({"compute": ("max(pages) as most",)}, "max needs values that have an order"),
    ({"compute": ("sum(max(amount)) as total",)}, "looks at many tuples"),
    ({"compute": ("sum(amount) / count() as mean",)}, "computes nothing of many tuples"),
    ({"compute": ("count() as n", "sum(amount) as N")}, "two columns 'n'"),
    ({"keys": ("user",), "compute": ("count() as user",)}, "two columns 'user'"),
    ({"compute": ("count() as window_end",)}, "two columns 'window_end'"),
    ({"compute": ("count() as __n",)}, "belong to Penstock"),
])
def test_a_window_that_cannot_be_run_says_what_would_be_right(options: dict[str, Any], expected: str) -> None:
    assert expected in message(window(**options))


def test_a_window_over_windows_goes_by_their_end() -> None:
    first = window("per_minute", keys=("user",))
    assert problems(first, window("per_hour", "per_minute", "tumbling(1 hour)", on="window_end")) == []
    wrong = window("per_hour", "per_minute", "tumbling(1 hour)", on="window_start")
    assert "write `on: window_end`" in message(first, wrong)
    assert "write `on: window_end`" in message(first, window("per_hour", "per_minute", on=None))
    waiting = window("per_hour", "per_minute", on="window_end", lateness=5.0)
    assert "has waited for late tuples already" in message(first, waiting)
    burying = window("per_hour", "per_minute", on="window_end", late="dead-letter")
    assert "none is late; give `late: dead-letter` to 'per_minute'" in message(first, burying)


@pytest.mark.parametrize(("options", "expected"), [
    ({"code": "m:f", "emits": EMITS}, "it has `compute` and `custom`"),
    ({"emits": EMITS}, "`emits` belongs to a function of your own"),
    ({"arguments": FrozenOptions(a=1)}, "`with` belongs to a function of your own"),
    ({"code": "m:f", "compute": (), "emits": (("left", parse_schema("n int")),)}, "`emits` names ports"),
])
def test_a_function_takes_the_place_of_compute(options: dict[str, Any], expected: str) -> None:
    without_maps = Select("plain", (StreamRef("clicks"),), columns=("user", "at"))
    assert expected in message(without_maps, window(read="plain", **options))


def test_tuples_with_a_map_cannot_be_given_to_a_function() -> None:
    text = message(window(code="m:f", compute=(), emits=EMITS))
    assert "column 'pages' is map<string,int>" in text
    assert "to_json(pages) as pages" in text


def test_what_a_function_gives_is_what_it_emits() -> None:
    whole = topology(window(code="m:f", compute=(), emits=EMITS))
    assert stream_schemas(whole)[StreamRef("w")] == EMITS[0][1]


def test_a_window_of_tuples_goes_with_all_others() -> None:
    counting = window("ten", span="tumbling(10 tuples)", on=None)
    assert problems(counting, window("closing")) == []
    assert problems(counting, window("changing", emit="changes"), Count("n", (StreamRef("clicks"),))) == []
    assert problems(window("closing"), window("last", "closing", "tumbling(10 tuples)", on=None)) == []


def test_a_window_over_windows_that_change_would_count_them_again() -> None:
    first = window("per_minute", emit="changes")
    second = window("per_hour", "per_minute", on="window_end", emit="changes")
    assert "would count each of them several times; remove `emit: changes` from 'per_minute'" in message(first, second)


def test_tuples_of_windows_and_others_do_not_mix() -> None:
    first = window("per_minute", compute=("count() as n",))
    other = Select("other", (StreamRef("clicks"),), columns=("at as window_start", "at as window_end", "1L as n"))
    both = Window("both", (StreamRef("per_minute"), StreamRef("other")), span=parse_span("tumbling(1h)"),
                  on="window_end", compute=("sum(n) as n",))
    assert "together with tuples that have passed no window" in message(first, other, both)


def test_one_topology_emits_windows_in_one_way() -> None:
    text = message(window("closing"), window("changing", emit="changes"))
    assert "operator 'changing': one topology cannot emit windows at their close, as 'closing' does" in text


def test_a_running_count_does_not_go_with_windows_that_close() -> None:
    count = Count("total", (StreamRef("clicks"),))
    text = message(window("closing"), count)
    assert text.startswith("operator 'total': a running count changes all the time")
    assert "give 'closing' `emit: changes`, or move the count" in text
    assert problems(window("changing", emit="changes"), count) == []


def test_the_next_operator_knows_the_columns_of_a_window() -> None:
    made = window(keys=("user",), compute=(
        "count() as n", "sum(sent) as bytes", "sum(amount) as total", "avg(sent) as mean", "max(day) as last_day",
        "collect(user) as users", "stddev(amount) as spread", "sum(price) as cost", "approx_distinct(user) as people"))
    schema = stream_schemas(topology(made))[StreamRef("w")]
    assert str(schema) == (
        "user string, window_start timestamp, window_end timestamp, n bigint, bytes bigint, total double, mean double, "
        "last_day date, users array<string>, spread double, cost numeric, people bigint")
    best = stream_schemas(topology(window(compute=("top(2, amount) as best",))))[StreamRef("w")]
    assert best is not None
    assert str(best.type_of("best")).startswith("array<struct<user:string,at:timestamp,day:date,")
