"""A layered drawing, left to right: where cards stand and how the edges between them run.

The steps are Sugiyama's: layers by longest path, dummy points where an edge passes a layer,
barycentre sweeps to lessen crossings, and heights as near to the neighbours as the order allows.
No randomness, and ties keep the order given: the same graph is always drawn alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

ORDER_SWEEPS = 12
HEIGHT_SWEEPS = 24
ROW_GAP = 26.0
STRAIGHT_WEIGHT = 10_000.0
"""How much an edge between two cards that have no other insists on being level, in the end."""
LANE_HEIGHT = 10.0
"""The room of an edge that passes a layer."""
LANE_WEIGHT = 4.0
"""How much more a passing edge insists on its height than a card does: long edges run straight."""
COLUMN_GAP, WIDEST_GAP = 64.0, 150.0
STEEPNESS = 3.0
"""How far an edge may rise or fall for each unit of the gap it does so in, before the gap grows."""


@dataclass(frozen=True)
class Box:
    """A card to be placed. `before` is room kept for a label on its left, `after` on its right."""

    key: str
    width: float
    height: float
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True)
class Edge:
    """An edge to be drawn. Edges with the same `port` leave their box at the same point."""

    start: str
    end: str
    port: str = ""


@dataclass(frozen=True)
class Placed:
    """A card where it stands; `x` and `y` are its upper left corner."""

    key: str
    x: float
    y: float
    width: float
    height: float
    layer: int

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Path:
    """An edge as the points it passes: out of one card's right side, past its label, to the other's label."""

    edge: Edge
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Column:
    """A layer's place: its cards from `x` to `right`, and the room for labels from `begin` to `end`.

    Edges rise and fall only between columns, so that none crosses a label.
    """

    begin: float
    x: float
    right: float
    end: float


@dataclass(frozen=True)
class Layout:
    """The finished drawing; the upper left corner is 0, 0."""

    cards: tuple[Placed, ...]
    paths: tuple[Path, ...]
    width: float
    height: float


Item = str | tuple[int, int]
"""What stands in a layer: a card's key, or (edge number, layer) where an edge passes."""


def lay_out(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Place every box and route every edge. The edges must have no cycle and name only given boxes."""
    layer_of = assign_layers([box.key for box in boxes], edges)
    routes = [_items_along(number, edge, layer_of) for number, edge in enumerate(edges)]
    links = [(first, second) for route in routes for first, second in pairwise(route)]
    layers = order_layers(_initial_layers(boxes, routes, layer_of), links)
    by_key = {box.key: box for box in boxes}
    heights = {item: by_key[item].height if isinstance(item, str) else LANE_HEIGHT
               for layer in layers for item in layer}
    middles = _settle_heights(layers, links, heights)
    columns = _columns(layers, by_key, _gaps(layers, links, middles))
    cards = {box.key: _placed(box, layer_of[box.key], columns[layer_of[box.key]], middles[box.key])
             for box in boxes}
    exits = _exits(edges, routes, cards, middles)
    paths = tuple(Path(edge, _points(route, exits[edge.start, edge.port], cards, by_key, middles, columns))
                  for edge, route in zip(edges, routes, strict=True))
    height = max((middles[item] + heights[item] / 2 for item in middles), default=0.0)
    return Layout(tuple(cards.values()), paths, columns[-1].end if columns else 0.0, height)


def assign_layers(keys: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The layer of each box: one more than the furthest it reads, so that every edge goes forward.

    Boxes that read nothing move right, next to what reads them: shorter edges, same order.
    """
    starts: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        starts[edge.end].append(edge.start)
        ends[edge.start].append(edge.end)
    layer_of: dict[str, int] = {}
    waiting = list(keys)
    while waiting:
        ready = [key for key in waiting if all(start in layer_of for start in starts[key])]
        if not ready:
            raise ValueError(f"a cycle through {', '.join(waiting)}")
        for key in ready:
            layer_of[key] = max((layer_of[start] + 1 for start in starts[key]), default=0)
        waiting = [key for key in waiting if key not in layer_of]
    for key in keys:
        if not starts[key] and ends[key]:
            layer_of[key] = min(layer_of[end] for end in ends[key]) - 1
    return layer_of


def order_layers(layers: list[list[Item]], links: Sequence[tuple[Item, Item]]) -> list[list[Item]]:
    """The order within each layer with the fewest crossings that the sweeps came by."""
    before, after = _neighbours(links)
    best, fewest = layers, count_crossings(layers, links)
    current = layers
    for sweep in range(ORDER_SWEEPS):
        forward = sweep % 2 == 0
        current = _sweep(current, before if forward else after, forward)
        crossings = count_crossings(current, links)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def count_crossings(layers: Sequence[Sequence[Item]], links: Sequence[tuple[Item, Item]]) -> int:
    """How many pairs of links between neighbouring layers cross."""
    place = {item: (number, index) for number, layer in enumerate(layers) for index, item in enumerate(layer)}
    between: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end in links:
        between[place[start][0]].append((place[start][1], place[end][1]))
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0
               for pairs in between.values() for number, a in enumerate(pairs) for b in pairs[:number])


def _items_along(number: int, edge: Edge, layer_of: Mapping[str, int]) -> list[Item]:
    passed = range(layer_of[edge.start] + 1, layer_of[edge.end])
    return [edge.start, *((number, layer) for layer in passed), edge.end]


def _initial_layers(boxes: Sequence[Box], routes: Sequence[list[Item]],
                    layer_of: Mapping[str, int]) -> list[list[Item]]:
    layers: list[list[Item]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for box in boxes:
        layers[layer_of[box.key]].append(box.key)
    for route in routes:
        for item in route:
            if not isinstance(item, str):
                layers[item[1]].append(item)
    return layers


def _neighbours(links: Sequence[tuple[Item, Item]]) -> tuple[dict[Item, list[Item]], dict[Item, list[Item]]]:
    before: dict[Item, list[Item]] = defaultdict(list)
    after: dict[Item, list[Item]] = defaultdict(list)
    for start, end in links:
        before[end].append(start)
        after[start].append(end)
    return before, after


def _sweep(layers: list[list[Item]], beside: Mapping[Item, list[Item]], forward: bool) -> list[list[Item]]:
    swept = list(layers)
    numbers = range(1, len(layers)) if forward else range(len(layers) - 2, -1, -1)
    for number in numbers:
        place = {item: index for index, item in enumerate(swept[number - 1 if forward else number + 1])}
        keys = {item: _mean([place[other] for other in beside.get(item, [])], float(index))
                for index, item in enumerate(swept[number])}
        swept[number] = sorted(swept[number], key=keys.__getitem__)
    return swept


def _settle_heights(layers: list[list[Item]], links: Sequence[tuple[Item, Item]],
                    heights: Mapping[Item, float]) -> dict[Item, float]:
    """The middle of every item: as near to its neighbours' as possible, in order, with room between."""
    before, after = _neighbours(links)
    middles: dict[Item, float] = {}
    for layer in layers:
        top = -sum(heights[item] + ROW_GAP for item in layer) / 2
        for item in layer:
            middles[item] = top + heights[item] / 2
            top += heights[item] + ROW_GAP
    for sweep in range(HEIGHT_SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            # The last sweeps listen to both sides, so that neither end of an edge has the last word.
            both = sweep >= HEIGHT_SWEEPS - 4
            wishes = [_mean([middles[other] for other in
                             (*(before[item] if forward or both else ()),
                              *(after[item] if not forward or both else ()))], middles[item])
                      for item in layer]
            weights = [1.0 if isinstance(item, str) else LANE_WEIGHT for item in layer]
            middles.update(zip(layer, _spaced(layer, wishes, weights, heights), strict=True))
    for layer in layers[1:]:
        level = {item: before[item][0] for item in layer
                 if len(before[item]) == 1 and len(after[before[item][0]]) == 1}
        wishes = [middles[level.get(item, item)] for item in layer]
        weights = [STRAIGHT_WEIGHT if item in level else 1.0 for item in layer]
        middles.update(zip(layer, _spaced(layer, wishes, weights, heights), strict=True))
    top = min((middles[item] - heights[item] / 2 for item in middles), default=0.0)
    return {item: round(middle - top, 1) for item, middle in middles.items()}


def _spaced(layer: Sequence[Item], wishes: Sequence[float], weights: Sequence[float],
            heights: Mapping[Item, float]) -> list[float]:
    """The middles nearest to the wishes, least squares, that keep order and gaps.

    Taking away each item's least distance from the first leaves an isotonic regression: neighbours
    that want to pass each other are pooled at their weighted mean.
    """
    offsets = [0.0]
    for upper, lower in pairwise(layer):
        offsets.append(offsets[-1] + (heights[upper] + heights[lower]) / 2 + ROW_GAP)
    pools: list[tuple[float, float, int]] = []
    for wish, offset, own_weight in zip(wishes, offsets, weights, strict=True):
        value, weight, size = wish - offset, own_weight, 1
        while pools and pools[-1][0] > value:
            other, other_weight, other_size = pools.pop()
            value = (value * weight + other * other_weight) / (weight + other_weight)
            weight, size = weight + other_weight, size + other_size
        pools.append((value, weight, size))
    settled = [value for value, _, size in pools for _ in range(size)]
    return [value + offset for value, offset in zip(settled, offsets, strict=True)]


def _gaps(layers: Sequence[Sequence[Item]], links: Sequence[tuple[Item, Item]],
          middles: Mapping[Item, float]) -> list[float]:
    """The room after each layer: more where an edge has far to rise or fall, so that it stays a curve."""
    number_of = {item: number for number, layer in enumerate(layers) for item in layer}
    gaps = [COLUMN_GAP] * len(layers)
    for start, end in links:
        wish = abs(middles[start] - middles[end]) / STEEPNESS + COLUMN_GAP / 2
        gaps[number_of[start]] = min(max(gaps[number_of[start]], wish), WIDEST_GAP)
    return gaps


def _columns(layers: Sequence[Sequence[Item]], by_key: Mapping[str, Box],
             gaps: Sequence[float]) -> list[Column]:
    """Every layer's place; its cards are all as wide as the widest."""
    columns: list[Column] = []
    begin = 0.0
    for layer, gap in zip(layers, gaps, strict=True):
        boxes = [by_key[item] for item in layer if isinstance(item, str)]
        x = begin + max((box.before for box in boxes), default=0.0)
        right = x + max((box.width for box in boxes), default=0.0)
        end = right + max((box.after for box in boxes), default=0.0)
        columns.append(Column(round(begin, 1), round(x, 1), round(right, 1), round(end, 1)))
        begin = end + gap
    return columns


def _placed(box: Box, layer: int, column: Column, middle: float) -> Placed:
    width = round(column.right - column.x, 1)
    return Placed(box.key, column.x, round(middle - box.height / 2, 1), width, box.height, layer)


def _points(route: Sequence[Item], out: float, cards: Mapping[str, Placed], by_key: Mapping[str, Box],
            middles: Mapping[Item, float], columns: Sequence[Column]) -> tuple[tuple[float, float], ...]:
    points: list[tuple[float, float]] = []
    for item in route:
        column = columns[cards[item].layer if isinstance(item, str) else item[1]]
        if item == route[0]:
            points += [(column.right, out), (column.end, out)]
        elif isinstance(item, str):
            points += [(column.begin, middles[item]), (column.x - by_key[item].before, middles[item])]
        else:
            points += [(column.begin, middles[item]), (column.end, middles[item])]
    return tuple((round(x, 1), round(y, 1)) for x, y in points)


def _exits(edges: Sequence[Edge], routes: Sequence[list[Item]], cards: Mapping[str, Placed],
           middles: Mapping[Item, float]) -> dict[tuple[str, str], float]:
    """Where each port's edges leave their card: one point a port, in the order of where they go."""
    goals: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for edge, route in zip(edges, routes, strict=True):
        goals[edge.start][edge.port].append(middles[route[1]])
    exits: dict[tuple[str, str], float] = {}
    for key, ports in goals.items():
        card = cards[key]
        ordered = sorted(ports, key=lambda port: (_mean(ports[port], 0.0), port))
        for index, port in enumerate(ordered):
            exits[key, port] = card.y + card.height * (index + 1) / (len(ordered) + 1)
    return exits


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
