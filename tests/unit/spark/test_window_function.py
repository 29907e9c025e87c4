"""A function of a window is given the window and its tuples."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.spark.tuples import tuple_class
from penstock.spark.window_function import WholeWindow, given_windows

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGES = [{"page": "/", "user": "ann"}, {"page": "/hats", "user": "ann"}]


def row(key: Any, begin: Any, end: Any) -> Any:
    return tuple_class(("key", "begin", "end", "tuples"))([key, begin, end, PAGES])


def test_a_window_of_time_has_its_key_its_bounds_and_its_tuples() -> None:
    def function(window: WholeWindow, tuples: list[Any], least: int) -> Iterable[Any]:
        return window, [tup.page for tup in tuples], tuples[1]["user"], least

    end = NOON + timedelta(minutes=1)
    window = WholeWindow("ann", start=NOON, end=end)
    assert given_windows(function)(row({"user": "ann"}, NOON, end), least=2) == (window, ["/", "/hats"], "ann", 2)


def test_a_window_of_so_many_tuples_has_numbers() -> None:
    def function(window: WholeWindow, tuples: list[Any]) -> Any:
        return window

    assert given_windows(function, counts_tuples=True)(row(None, 3, 4)) == WholeWindow(None, first=3, last=4)
    two = given_windows(function, counts_tuples=True)(row({"user": "ann", "day": 1}, 3, 4))
    assert two.key == ("ann", 1)


def test_the_context_is_for_those_who_ask() -> None:
    def function(window: WholeWindow, tuples: list[Any], context: Any) -> Any:
        return context

    context: Any = object()
    assert given_windows(function)(row(None, NOON, NOON), context=context) is context
