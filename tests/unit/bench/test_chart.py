from __future__ import annotations

from xml.etree import ElementTree

import pytest

from penstock.bench.chart import line_chart, ticks


def test_every_series_has_a_line_and_a_name() -> None:
    drawn = line_chart("Age <now>", {"one": [(0, 0), (1, 2)], "two & more": [(0, 1), (1, 1)]}, "seconds", "age")
    tree = ElementTree.fromstring(drawn)
    assert len(tree.findall("{*}polyline")) == 2
    said = [text.text for text in tree.findall("{*}text")]
    assert {"Age <now>", "one", "two & more", "seconds", "age"} <= set(said)


def test_an_empty_chart_can_be_drawn() -> None:
    ElementTree.fromstring(line_chart("Nothing", {"one": []}, "x", "y"))


@pytest.mark.parametrize(("low", "high", "expected"), [
    (0, 10, [0, 2, 4, 6, 8, 10]), (-5, 20, [-5, 0, 5, 10, 15, 20]), (0, 0.7, [0, 0.2, 0.4, 0.6]), (3, 3, [3]),
])
def test_axes_have_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected
