from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.plan.layout import Box, Edge, Layout, assign_layers, count_crossings, lay_out, order_layers


def boxes(*keys: str) -> list[Box]:
    return [Box(key, 120.0, 58.0) for key in keys]


def edges(*pairs: str) -> list[Edge]:
    return [Edge(*pair.split(">")) for pair in pairs]


def middle_of(layout: Layout, key: str) -> float:
    return next(card.middle for card in layout.cards if card.key == key)


def test_a_box_stands_one_layer_after_the_furthest_it_reads() -> None:
    assert assign_layers("abcd", edges("a>b", "b>c", "a>d", "c>d")) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_a_source_stands_next_to_what_reads_it() -> None:
    assert assign_layers("abcz", edges("a>b", "b>c", "z>c"))["z"] == 1


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="a, b"):
        assign_layers("ab", edges("a>b", "b>a"))


def test_crossing_edges_are_untangled() -> None:
    links = [("a", "y"), ("b", "x")]
    tangled: list[list[str | tuple[int, int]]] = [["a", "b"], ["x", "y"]]

    assert count_crossings(tangled, links) == 1
    assert count_crossings(order_layers(tangled, links), links) == 0


def test_a_chain_is_level() -> None:
    layout = lay_out(boxes(*"abcde"), edges("a>b", "b>c", "c>d", "d>e"))

    assert len({card.middle for card in layout.cards}) == 1


def test_a_branch_that_goes_on_alone_is_level() -> None:
    layout = lay_out(boxes(*"abcdef"), edges("a>b", "a>c", "a>d", "b>e", "d>f"))

    assert middle_of(layout, "b") == middle_of(layout, "e")
    assert middle_of(layout, "d") == middle_of(layout, "f")


def test_ports_leave_their_card_at_points_of_their_own() -> None:
    layout = lay_out(boxes(*"abc"), [Edge("a", "b", "good"), Edge("a", "c", "bad")])

    assert layout.paths[0].points[0][1] != layout.paths[1].points[0][1]


def test_an_edge_ends_where_the_room_for_the_label_begins() -> None:
    layout = lay_out([Box("a", 100, 50), Box("b", 100, 50, before=70)], edges("a>b"))

    assert layout.paths[0].points[-1][0] == layout.cards[1].x - 70


def test_nothing_gives_an_empty_layout() -> None:
    assert lay_out([], []) == Layout((), (), 0.0, 0.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Edge]]:
    count = draw(st.integers(1, 16))
    sizes = st.tuples(*(st.sampled_from(choices) for choices in
                        ([90.0, 140.0, 260.0], [58.0, 88.0], [0.0, 75.0], [0.0, 30.0])))
    sized = [Box(f"n{number}", *draw(sizes)) for number in range(count)]
    pairs = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=24))
    return sized, [Edge(f"n{start}", f"n{end}") for start, end in sorted(pairs) if start < end]


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_cards_never_overlap_and_lie_within_the_drawing(graph: tuple[list[Box], list[Edge]]) -> None:
    layout = lay_out(*graph)

    for one, other in combinations(layout.cards, 2):
        assert (one.x + one.width < other.x or other.x + other.width < one.x
                or one.y + one.height < other.y or other.y + other.height < one.y)
    for card in layout.cards:
        assert card.x >= 0 and card.x + card.width <= layout.width + 0.1
        assert card.y >= -0.1 and card.y + card.height <= layout.height + 0.1


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_no_edge_goes_backwards_or_through_a_card(graph: tuple[list[Box], list[Edge]]) -> None:
    layout = lay_out(*graph)

    for path in layout.paths:
        for (x1, y1), (x2, y2) in pairwise(path.points):
            assert x2 >= x1
            inside = [card for card in layout.cards if max(x1, card.x) < min(x2, card.x + card.width)
                      and max(min(y1, y2), card.y) < min(max(y1, y2), card.y + card.height) + 0.01]
            assert not inside
