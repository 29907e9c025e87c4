"""What colours the operators on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock.console.load import Load, load_of
from penstock.console.watching import Point

GRAPH: Mapping[str, Any] = {
    "nodes": [{"id": "lines", "role": "source"}, {"id": "split", "role": "python"}, {"id": "rare", "role": "native"},
              {"id": "counts", "role": "stateful"}, {"id": "sink:out", "role": "sink"}],
    "edges": [{"from": "lines", "to": "split", "port": ""}, {"from": "split", "to": "counts", "port": "words"},
              {"from": "split", "to": "rare", "port": "odd"}, {"from": "counts", "to": "sink:out", "port": ""}],
}  # fmt: skip
RATES = {"lines": 100.0, "split": 900.0, "split.words": 890.0, "split.odd": 10.0, "sink:out": 10.0}


def points(at_work: float, lags: Sequence[int] = (0,), rates: Mapping[str, float] = RATES) -> list[Point]:
    """One a second."""
    return [Point(1000.0 + place, place, lag, {}, rates, 50.0, at_work=at_work) for place, lag in enumerate(lags)]


def test_an_idle_topology_is_cool_and_one_without_a_pause_is_hot() -> None:
    idle = load_of(GRAPH, points(0.0))
    assert set(idle.nodes) == {"lines", "split", "rare", "counts", "sink:out"}
    assert set(idle.nodes.values()) == {0.0}
    # It takes 100 and gives 900: more than any other.
    full = load_of(GRAPH, points(1.0))
    assert full.nodes["split"] == 1.0
    assert full.nodes["counts"] == pytest.approx(0.89)
    assert full.nodes["rare"] == pytest.approx(0.01)


def test_a_fast_one_that_has_time_left_is_as_cool_as_a_slow_one_that_has() -> None:
    fast = {name: rate * 1000 for name, rate in RATES.items()}
    slow = {name: rate / 1000 for name, rate in RATES.items()}
    assert load_of(GRAPH, points(0.2, rates=fast)).nodes["split"] == pytest.approx(0.2)
    assert load_of(GRAPH, points(0.2, rates=slow)).nodes["split"] == pytest.approx(0.2)


def test_one_that_does_not_keep_up_is_hot_though_it_rests_between_epochs() -> None:
    """As with `max_tuples` and an interval that are too small for what comes."""
    growing = points(0.1, [1000 + 200 * second for second in range(12)])
    assert load_of(GRAPH, growing) == Load(0.1, True, load_of(GRAPH, points(1.0)).nodes)
    # It catches up, it is about to be read, or nobody knows yet.
    for lags in ([3000 - 200 * second for second in range(12)], [10 * second for second in range(12)], [0, 9000]):
        assert not load_of(GRAPH, points(0.1, lags)).behind


def test_between_two_epochs_no_operator_seems_to_rest() -> None:
    still = points(1.0)[0]
    later = Point(1005.0, 0, 0, {}, dict.fromkeys(RATES, 0.0), 50.0, at_work=1.0)
    assert load_of(GRAPH, [still, later]).nodes == load_of(GRAPH, [still]).nodes


def test_where_nothing_has_come_through_yet_it_may_be_any() -> None:
    found = load_of(GRAPH, points(1.0, rates=dict.fromkeys(RATES, 0.0)))
    assert set(found.nodes.values()) == {1.0}


def test_what_nobody_counts_has_no_load() -> None:
    found = load_of(GRAPH, points(1.0, rates={"lines": 100.0}))
    assert set(found.nodes) == {"lines", "split"}
    assert load_of(GRAPH, []) == load_of(None, points(1.0)) == Load()
