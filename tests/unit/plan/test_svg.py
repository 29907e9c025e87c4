from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from penstock.errors import TopologyError
from penstock.plan.graph import build_plan
from penstock.plan.lettering import text_width
from penstock.plan.rewrites import rewrite
from penstock.plan.svg import layout_of, plan_svg
from penstock.topology.model import (
    Custom,
    Dup,
    Filter,
    FrozenOptions,
    Route,
    RouteKind,
    Sink,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.schema import parse_schema

SVG = "{http://www.w3.org/2000/svg}"


def drawn(topology: Topology) -> ElementTree.Element:
    return ElementTree.fromstring(plan_svg(topology))


def card_groups(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in root.iter(f"{SVG}g") if group.get("data-node")]


def texts(root: ElementTree.Element, kind: str) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == kind]


@pytest.fixture
def awkward() -> Topology:
    """Long names, markup, a sink named like a stream, a route with many fields."""
    name = "<the> \"longest\" & 'oddest' operator name anybody ever wrote WWWWMMMM"
    fields = ("some_rather_long_field", "another_rather_long_field", "third")
    source = "数据流来源非常长的名字" * 2
    return Topology(
        "a <title> & more",
        sources=(Source(source, "file", FrozenOptions(file="<&>.csv")),),
        operators=(Filter(name, (StreamRef(source),),
                          condition="a < b AND c <> '&' AND " + "x = 1 OR " * 20,
                          route=Route(RouteKind.HASH, fields), parallelism=128),),
        sinks=(Sink(name, StreamRef(name), "file", FrozenOptions(file="out.jsonl")),))


def test_every_node_is_drawn_once_in_the_colour_of_its_role(log_alerts: Topology) -> None:
    groups = card_groups(drawn(log_alerts))

    assert len(groups) == 10
    assert {group.get("data-node"): group.get("class") for group in groups} == {
        "logs": "card source", "audit": "card source", "errors": "card native",
        "parse": "card python", "strict": "card native", "every": "card native",
        "per_host": "card stateful", "sink:alerts": "card sink", "sink:rejected": "card sink",
        "sink:archive": "card sink"}


def test_the_picture_shows_what_was_written_even_after_rewrites(log_alerts: Topology) -> None:
    assert plan_svg(rewrite(build_plan(log_alerts))) == plan_svg(log_alerts)


def test_routes_ports_title_and_delivery_are_lettered(log_alerts: Topology) -> None:
    root = drawn(log_alerts)

    assert sorted(texts(root, "label")) == ["bad", "good", "hash(host) ×2"]
    assert texts(root, "title") == ["log-alerts"]
    assert [span.text for span in root.iter(f"{SVG}tspan")] == ["at-least-once"]


def test_the_legend_names_only_the_roles_present(url_reach: Topology) -> None:
    only_native = replace(url_reach, operators=url_reach.operators[:1],
                          sinks=(replace(url_reach.sinks[0], input=StreamRef("mentions")),))

    assert texts(drawn(only_native), "legend") == ["source", "native operator", "sink"]


def test_markup_in_names_is_lettered_as_it_was_written(awkward: Topology) -> None:
    root = drawn(awkward)

    assert texts(root, "title") == ["a <title> & more"]
    assert "file <&>.csv" in texts(root, "brief")
    assert len(card_groups(root)) == 3


def test_a_long_route_keeps_its_number_of_instances(awkward: Topology) -> None:
    [label] = texts(drawn(awkward), "label")

    assert label.startswith("hash(some_rather") and label.endswith("… ×128")


@pytest.mark.parametrize("name", ["awkward", "log_alerts", "url_reach"])
def test_no_text_leaves_its_card_or_pill(name: str, request: pytest.FixtureRequest) -> None:
    root = drawn(request.getfixturevalue(name))

    for group in card_groups(root):
        [face] = list(group.iter(f"{SVG}rect"))
        right = float(face.attrib["x"]) + float(face.attrib["width"])
        for text in group.iter(f"{SVG}text"):
            bold = text.get("class") == "name"
            width = text_width(text.text or "", 14 if bold else 11.5, bold=bold)
            assert float(text.attrib["x"]) + width < right
    pills = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "pill"]
    labels = [label for label in texts(root, "label") if "(" in label or "shuffle" in label]
    assert len(pills) == len(labels) == 1
    assert text_width(labels[0], 10.5) < float(pills[0].attrib["width"])


@pytest.mark.parametrize("name", ["awkward", "log_alerts", "url_reach"])
def test_cards_stand_apart_and_edges_lead_to_the_right(name: str, request: pytest.FixtureRequest) -> None:
    layout = layout_of(request.getfixturevalue(name))

    for one, other in combinations(layout.cards, 2):
        assert one.layer != other.layer or one.y + one.height < other.y or other.y + other.height < one.y
    layers = {card.key: card.layer for card in layout.cards}
    assert all(layers[path.edge.start] < layers[path.edge.end] for path in layout.paths)
    assert len(layout.paths) >= len(layout.cards) - 1 - (name == "log_alerts")


def test_two_long_ports_that_begin_alike_leave_at_different_points() -> None:
    ports = tuple((f"a_port_whose_name_is_rather_long_{side}", parse_schema("x int")) for side in "ab")
    topology = Topology("t", sources=(Source("lines", "file", FrozenOptions(file="x")),),
                        operators=(Custom("split", (StreamRef("lines"),), code="m:f", emits=ports),),
                        sinks=tuple(Sink(f"out{number}", StreamRef("split", port), "console", FrozenOptions())
                                    for number, (port, _) in enumerate(ports)))

    assert len({path.points[0] for path in layout_of(topology).paths if path.edge.port}) == 2


def test_dark_colours_are_there_for_dark_viewers(url_reach: Topology) -> None:
    [style] = list(drawn(url_reach).iter(f"{SVG}style"))

    assert "@media (prefers-color-scheme: dark){.ground{fill:#10151d}" in (style.text or "")


def test_the_same_topology_gives_the_same_bytes(log_alerts: Topology) -> None:
    again = replace(log_alerts, operators=tuple(replace(operator) for operator in log_alerts.operators))

    assert plan_svg(again).encode() == plan_svg(log_alerts).encode()


def test_a_topology_of_thirty_nodes_in_a_row_is_drawn() -> None:
    names = ["lines", *(f"step_{number}" for number in range(28))]
    chain = Topology("row", sources=(Source("lines", "file", FrozenOptions(file="x")),),
                     operators=tuple(Dup(name, (StreamRef(before),))
                                     for before, name in pairwise(names)),
                     sinks=(Sink("out", StreamRef(names[-1]), "console", FrozenOptions()),))

    assert len(card_groups(drawn(chain))) == 30
    assert len({card.middle for card in layout_of(chain).cards}) == 1


def test_a_cycle_is_refused_as_the_users_mistake() -> None:
    with pytest.raises(TopologyError, match="'a', 'b'"):
        plan_svg(Topology("t", operators=(Dup("a", (StreamRef("b"),)), Dup("b", (StreamRef("a"),)))))
