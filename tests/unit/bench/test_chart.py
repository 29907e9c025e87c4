from __future__ import annotations

from xml.etree import ElementTree

import pytest

from penstock.bench.chart import bar_chart, line_chart, ticks


def test_every_series_has_a_line_and_a_name() -> None:
    drawn = line_chart("Age <now>", {"one": [(0, 0), (1, 2)], "two & more": [(0, 1), (1, 1)]}, "seconds", "age")
    tree = ElementTree.fromstring(drawn)
    assert len(tree.findall("{*}polyline")) == 2
    said = [text.text for text in tree.findall("{*}text")]
    assert {"Age <now>", "one", "two & more", "seconds", "age"} <= set(said)


def test_what_stands_beside_a_series_is_dashed_and_in_its_colour() -> None:
    drawn = line_chart("t", {"one": [(0, 1)], "two": [(0, 2)]}, "x", "y", {"two": [(0, 40)]})
    lines = ElementTree.fromstring(drawn).findall("{*}polyline")
    assert [(line.get("class"), bool(line.get("stroke-dasharray"))) for line in lines] == [
        ("line c0", False), ("line c1", False), ("line c1", True)]
    assert "40" in [text.text for text in ElementTree.fromstring(drawn).findall("{*}text")]


def test_bars_are_as_long_as_their_values() -> None:
    tree = ElementTree.fromstring(bar_chart("Speed", {"fast": 2000.0, "slow": 500.0}, "tuples"))
    fast, slow = (float(bar.get("width") or 0) for bar in tree.findall("{*}rect") if bar.get("class") == "bar")
    assert fast == pytest.approx(4 * slow, rel=0.01)
    assert {"fast", "2,000", "slow", "500", "tuples"} <= {text.text for text in tree.findall("{*}text")}
    ElementTree.fromstring(bar_chart("Nothing", {}, "tuples"))


def test_an_empty_chart_can_be_drawn() -> None:
    ElementTree.fromstring(line_chart("Nothing", {"one": []}, "x", "y"))


@pytest.mark.parametrize(("low", "high", "expected"), [
    (0, 10, [0, 2, 4, 6, 8, 10]), (-5, 20, [-5, 0, 5, 10, 15, 20]), (0, 0.7, [0, 0.2, 0.4, 0.6]), (3, 3, [3]),
])
def test_axes_have_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected
