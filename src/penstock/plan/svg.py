"""The topology as a picture for a slide: an SVG file with its own light and dark colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.plan.counting import UNNAMED_PORT
from penstock.plan.description import Node, Role, brief_of, counted, role_of, route_label
from penstock.plan.graph import (
    Plan,
    effective_route,
    input_streams,
    offering_nodes,
    operators_in_order,
    reading_nodes,
)
from penstock.plan.layout import Box, Edge, Layout, Path, Placed, lay_out
from penstock.plan.lettering import escaped, shortened, text_width
from penstock.plan.palette import ICONS, STYLE
from penstock.topology.model import DEFAULT_PORT, Operator, Route, Sink, Topology

MARGIN = 32.0
HEADER = 64.0
FOOTER = 34.0
CARD_HEIGHT = 58.0
PORT_HEIGHT = 22.0
ICON_ROOM = 52.0
"""From a card's left side to its text."""
TEXT_END = 16.0
NARROWEST_TEXT, WIDEST_TEXT = 76.0, 200.0
NAME_SIZE, BRIEF_SIZE, LABEL_SIZE, TITLE_SIZE = 14.0, 11.5, 10.5, 20.0
PILL_HEIGHT, PILL_PADDING, ARROW_ROOM = 20.0, 9.0, 20.0
WIDEST_PILL, WIDEST_PORT = 150.0, 90.0
LEAST_TITLE = 560.0
DELIVERY_GAP = 12.0
LEAST_WIDTH = 480.0
LEGEND = {Role.SOURCE: "source", Role.NATIVE: "native operator", Role.PYTHON: "Python operator",
          Role.STATEFUL: "stateful operator", Role.SINK: "sink"}


@dataclass(frozen=True)
class _Card:
    """A node with what is written on it and beside it, already shortened."""

    key: str
    node: Node
    name: str
    brief: str
    label: str
    ports: tuple[str, ...]
    entered: tuple[str, ...]
    """What stands on the edges that leave it: its own port, and the port of the operator they lead to."""

    @property
    def box(self) -> Box:
        text = max(text_width(self.name, NAME_SIZE, bold=True), text_width(self.brief, BRIEF_SIZE),
                   NARROWEST_TEXT)
        height = max(CARD_HEIGHT, PORT_HEIGHT * (len(self.ports) + 1))
        return Box(self.key, ICON_ROOM + text + TEXT_END, height,
                   before=_pill_width(self.label) + ARROW_ROOM if self.label else 0.0,
                   after=max((text_width(_port(port), LABEL_SIZE) + 12 for port in (*self.ports, *self.entered)),
                             default=0.0))


def plan_svg(drawn: Plan | Topology) -> str:
    """An SVG picture of a topology's own nodes, as written; the same topology gives the same text.

    Raises TopologyError for a topology that has no plan: a cycle, a stream that does not exist.
    """
    topology = drawn.topology if isinstance(drawn, Plan) else drawn
    cards = _cards(topology)
    layout = lay_out([card.box for card in cards], _edges(topology))
    legend, legend_width = _legend(cards, MARGIN, HEADER + MARGIN + layout.height + FOOTER)
    title, title_width = _title(topology, layout.width)
    width = round(max(layout.width + 2 * MARGIN, title_width, legend_width, LEAST_WIDTH))
    height = round(HEADER + MARGIN + layout.height + FOOTER + MARGIN)
    counts = ", ".join((counted(len(topology.sources), "source"),
                        counted(len(topology.operators), "operator"), counted(len(topology.sinks), "sink")))
    left = max(MARGIN, (width - layout.width) / 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escaped(topology.name)}: {counts}">',
        f"<style>{STYLE}</style>",
        '<rect class="ground" width="100%" height="100%" rx="12"/>',
        title,
        f'<g transform="translate({left:g} {HEADER + MARGIN / 2:g})">',
        *_drawing(cards, layout, _exit_labels(topology)),
        "</g>",
        *legend,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def layout_of(topology: Topology) -> Layout:
    """Where `plan_svg` puts the nodes: sources and operators under their names, sinks as `sink:name`."""
    return lay_out([card.box for card in _cards(topology)], _edges(topology))


def _cards(topology: Topology) -> list[_Card]:
    nodes: Iterable[Node] = (*topology.sources, *operators_in_order(topology), *topology.sinks)
    written = _exit_labels(topology)
    return [_card(node, tuple(label for (name, _), label in written.items() if name == _key(node))) for node in nodes]


def _card(node: Node, entered: tuple[str, ...]) -> _Card:
    label = ""
    ports: tuple[str, ...] = ()
    if isinstance(node, Operator):
        route = effective_route(node)
        if route is not None:
            label = _route(route, node.parallelism)
        if node.output_ports() != (DEFAULT_PORT,):
            ports = node.output_ports()
    return _Card(_key(node), node, shortened(node.name, WIDEST_TEXT, NAME_SIZE, bold=True),
                 shortened(brief_of(node), WIDEST_TEXT, BRIEF_SIZE), label, ports, entered)


def _edges(topology: Topology) -> list[Edge]:
    ported = {node.name for node in offering_nodes(topology)
              if isinstance(node, Operator) and node.output_ports() != (DEFAULT_PORT,)}
    edges = [Edge(ref.node, _key(node), ref.port or UNNAMED_PORT if ref.node in ported else "")
             for node in reading_nodes(topology) for ref in input_streams(node)]
    return list(dict.fromkeys(edges))


def _exit_labels(topology: Topology) -> dict[tuple[str, str], str]:
    """By node and port, what stands where its edges leave it: the port, and the named ports that they enter."""
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in _edges(topology):
        labels.setdefault((edge.start, edge.port), [edge.port] if edge.port else [])
    for operator in topology.operators:
        for port, ref in zip(operator.input_ports, operator.inputs, strict=False):
            known = labels.get((ref.node, ref.port), labels.get((ref.node, UNNAMED_PORT), []))
            known += [f"→ {port}"] if f"→ {port}" not in known else []
    return {place: " ".join(words) for place, words in labels.items() if words}


def _key(node: Node) -> str:
    """Sinks have names of their own, which may be those of streams."""
    return f"sink:{node.name}" if isinstance(node, Sink) else node.name


def _port(port: str) -> str:
    return shortened(port or UNNAMED_PORT, WIDEST_PORT, LABEL_SIZE)


def _route(route: Route, parallelism: int | None) -> str:
    """The route on its pill: fields may be cut short, how many instances there are never is."""
    instances = route_label(route, parallelism).removeprefix(str(route))
    return shortened(str(route), WIDEST_PILL - text_width(instances, LABEL_SIZE), LABEL_SIZE) + instances


def _drawing(cards: Sequence[_Card], layout: Layout, labels: Mapping[tuple[str, str], str]) -> list[str]:
    """Edges first, so that cards and labels lie above them."""
    placed = {place.key: place for place in layout.cards}
    labelled = {card.key for card in cards if card.label}
    return [*(_edge(path, arrow=path.edge.end not in labelled) for path in layout.paths),
            *_port_names(layout.paths, labels),
            *(line for card in cards for line in (*_pill(card, placed[card.key]),
                                                  *_drawn_card(card, placed[card.key])))]


def _edge(path: Path, *, arrow: bool) -> str:
    x, y = path.points[0]
    curve = [f"M{x:g} {y:g}"]
    for (x1, y1), (x2, y2) in pairwise(path.points):
        half = (x1 + x2) / 2
        curve.append(f"H{x2:g}" if y1 == y2 else f"C{half:g} {y1:g} {half:g} {y2:g} {x2:g} {y2:g}")
    line = f'<path class="edge" d="{" ".join(curve)}"/>'
    return line + _arrowhead(*path.points[-1]) if arrow else line


def _arrowhead(x: float, y: float) -> str:
    """A head whose tip is at the point. Drawn, not a marker: slide programs lose markers."""
    return f'<path class="head" d="M{x:g} {y:g}l-8 -4.5v9z"/>'


def _port_names(paths: Sequence[Path], labels: Mapping[tuple[str, str], str]) -> list[str]:
    exits = {path.points[0]: labels.get((path.edge.start, path.edge.port), "") for path in paths}
    return [f'<text class="label" x="{x + 7:g}" y="{y - 5:g}">{escaped(_port(label))}</text>'
            for (x, y), label in exits.items() if label]


def _pill(card: _Card, place: Placed) -> list[str]:
    if not card.label:
        return []
    width = _pill_width(card.label)
    x, y = place.x - ARROW_ROOM - width, place.middle
    return [f'<path class="edge" d="M{x + width:g} {y:g}H{place.x:g}"/>' + _arrowhead(place.x, y),
            f'<rect class="pill" x="{x:g}" y="{y - PILL_HEIGHT / 2:g}" width="{width:g}" '
            f'height="{PILL_HEIGHT:g}" rx="{PILL_HEIGHT / 2:g}"/>',
            f'<text class="label" x="{x + width / 2:g}" y="{y + 3.7:g}" text-anchor="middle">'
            f"{escaped(card.label)}</text>"]


def _pill_width(label: str) -> float:
    return round(text_width(label, LABEL_SIZE) + 2 * PILL_PADDING, 1)


def _drawn_card(card: _Card, place: Placed) -> list[str]:
    role = role_of(card.node)
    x, y, height = place.x, place.y, place.height
    middle = place.middle
    return [
        f'<g class="card {role}" data-node="{escaped(card.key)}">',
        f"<title>{escaped(card.node.name)}: {escaped(brief_of(card.node))}</title>",
        f'<rect class="face" x="{x:g}" y="{y:g}" width="{place.width:g}" height="{height:g}" rx="10"/>',
        f'<path class="accent" d="M{x + 10:g} {y:g}h-4a6 6 0 0 0 -6 6v{height - 12:g}a6 6 0 0 0 6 6h4'
        f'a6 6 0 0 1 -5 -6v{12 - height:g}a6 6 0 0 1 5 -6z"/>',
        *_icon(role, x + 29, middle),
        f'<text class="name" x="{x + ICON_ROOM:g}" y="{middle - 3:g}">{escaped(card.name)}</text>',
        f'<text class="brief" x="{x + ICON_ROOM:g}" y="{middle + 15:g}">{escaped(card.brief)}</text>',
        "</g>",
    ]


def _icon(role: Role, x: float, y: float) -> list[str]:
    return [f'<circle class="disc" cx="{x:g}" cy="{y:g}" r="14"/>',
            f'<path class="icon" transform="translate({x:g} {y:g})" d="{ICONS[role]}"/>']


def _title(topology: Topology, room: float) -> tuple[str, float]:
    """The name and the delivery, and how wide a picture they need."""
    delivery = str(topology.delivery)
    beside = DELIVERY_GAP + text_width(delivery, NAME_SIZE)
    name = shortened(topology.name, max(LEAST_TITLE, room - beside), TITLE_SIZE, bold=True)
    # One text of two runs: where the second begins is then the viewer's own measure, not a guess.
    line = (f'<text class="title" x="{MARGIN:g}" y="{MARGIN + 16:g}">{escaped(name)}'
            f'<tspan class="delivery" dx="{DELIVERY_GAP:g}">{escaped(delivery)}</tspan></text>')
    return line, text_width(name, TITLE_SIZE, bold=True) + beside + 2 * MARGIN


def _legend(cards: Sequence[_Card], x: float, y: float) -> tuple[list[str], float]:
    present = {role_of(card.node) for card in cards}
    lines = []
    for role in LEGEND:
        if role in present:
            lines.append(f'<g class="{role}"><circle class="dot" cx="{x + 5:g}" cy="{y:g}" r="5"/>'
                         f'<text class="legend" x="{x + 16:g}" y="{y + 4:g}">{LEGEND[role]}</text></g>')
            x = round(x + 16 + text_width(LEGEND[role], BRIEF_SIZE) + 18, 1)
    return lines, x - 18 + MARGIN
