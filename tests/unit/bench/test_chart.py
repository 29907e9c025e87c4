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


def test_what_is_only_beside_has_a_colour_of_its_own_and_a_dashed_line_in_the_legend() -> None:
    drawn = line_chart("t", {"one": [(0, 1)]}, "x", "y", {"one": [(0, 2)], "theirs": [(0, 3)]}, "the paper's")
    tree = ElementTree.fromstring(drawn)
    lines = [(line.get("class"), bool(line.get("stroke-dasharray"))) for line in tree.findall("{*}polyline")]
    assert lines == [("line c0", False), ("line c0", True), ("line c1", True)]
    samples = [(line.get("class"), bool(line.get("stroke-dasharray"))) for line in tree.findall("{*}path")
               if "line" in (line.get("class") or "")]  # fmt: skip
    assert samples == [("line c0", False), ("line c1", True), ("line muted", True)]


@pytest.mark.parametrize("names", [
    ["×1, k = 1", "×2, k = 1", "×3, k = 1", "×1, k = 0"],
    [f"a series with a name that is rather long, number {number}" for number in range(4)],
])
def test_the_legend_is_between_the_title_and_the_lines_and_nothing_overlaps(names: list[str]) -> None:
    series = {name: [(25.0, 25.0), (200.0, 60.0 + number)] for number, name in enumerate(names)}
    paper = {names[0]: [(25.0, 25.0), (200.0, 65.0)]}
    tree = ElementTree.fromstring(line_chart("Figure 3: stateless, for k = 1 and k = 2, delivered", series,
                                             "thousand tuples a second offered", "delivered", paper, "the paper's"))
    texts = {text.text: (float(text.get("x") or 0), float(text.get("y") or 0)) for text in tree.findall("{*}text")}
    places = [(*texts[name], len(name) * 6.0) for name in [*names, "the paper's"]]
    (_, title), (_, axis) = texts["Figure 3: stateless, for k = 1 and k = 2, delivered"], texts["delivered"]
    points = [point.split(",") for line in tree.findall("{*}polyline") for point in (line.get("points") or "").split()]
    highest = min(float(y) for _, y in points)
    width, height = (float(value) for value in (tree.get("viewBox") or "").split()[2:])
    assert all(title + 16 < y < axis - 10 for _, y, _ in places)
    assert axis < highest
    assert max(float(y) for _, y in points) < height
    for number, (x, y, long) in enumerate(places):
        assert x + long < width
        assert all(abs(y - other_y) > 12 or x + long + 22 < other_x for other_x, other_y, _ in places[number + 1 :])


def test_bars_are_as_long_as_their_values() -> None:
    tree = ElementTree.fromstring(bar_chart("Speed", {"fast": 2000.0, "slow": 500.0}, "tuples"))
    fast, slow = (float(bar.get("width") or 0) for bar in tree.findall("{*}rect") if bar.get("class") == "bar")
    assert fast == pytest.approx(4 * slow, rel=0.01)
    assert {"fast", "2,000", "slow", "500", "tuples"} <= {text.text for text in tree.findall("{*}text")}
    ElementTree.fromstring(bar_chart("Nothing", {}, "tuples"))


def test_a_long_name_stands_before_its_bar_and_values_have_the_digits_they_need() -> None:
    name = "something with a name that is rather long"
    tree = ElementTree.fromstring(bar_chart("Ratios", {name: 1.456, "short": 12.0}, "times", digits=2))
    texts = {text.text: text for text in tree.findall("{*}text")}
    assert float(texts[name].get("x") or 0) > 6 * len(name)
    assert {"1.46", "12.00"} <= texts.keys()
    bars = [bar for bar in tree.findall("{*}rect") if bar.get("class") == "bar"]
    assert max(float(bar.get("x") or 0) + float(bar.get("width") or 0) for bar in bars) < 860 - 50


def test_an_empty_chart_can_be_drawn() -> None:
    ElementTree.fromstring(line_chart("Nothing", {"one": []}, "x", "y"))


@pytest.mark.parametrize(("low", "high", "expected"), [
    (0, 10, [0, 2, 4, 6, 8, 10]), (-5, 20, [-5, 0, 5, 10, 15, 20]), (0, 0.7, [0, 0.2, 0.4, 0.6]), (3, 3, [3]),
])
def test_axes_have_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected
