"""Routes as users write them: `shuffle`, `hash(user)`, and the names other systems gave them."""

from __future__ import annotations

import re

from penstock.errors import TopologyError
from penstock.topology.model import Route, RouteKind
from penstock.topology.problems import suggest
from penstock.topology.schema import split_top_level

OTHER_NAMES = {
    "random": RouteKind.SHUFFLE,
    "round_robin": RouteKind.SHUFFLE,
    "fields": RouteKind.HASH,
    "same_key": RouteKind.HASH,
    "hashing": RouteKind.HASH,
    "primary": RouteKind.GLOBAL,
    "broadcast": RouteKind.ALL,
    "local_or_shuffle": RouteKind.LOCAL,
}
"""Names that Storm, DADSTORM and others use, and the route each means."""

ROUTE_NAMES: dict[str, RouteKind] = {**{str(kind): kind for kind in RouteKind}, **OTHER_NAMES}
"""Every name that `parse_route` knows."""

_ROUTE = re.compile(r"\s*(?P<name>[\w-]+)\s*(?:\((?P<fields>.*)\)\s*)?$", re.DOTALL)
_IDENTIFIER = re.compile(r"\w+$")


def parse_route(text: str) -> Route:
    """Read `hash(user, url)` or another route; raises TopologyError that says what would be right."""
    match = _ROUTE.match(text)
    if match is None:
        raise TopologyError(f"'{text}' is not a route; write for example shuffle or hash(user)")
    kind = ROUTE_NAMES.get(match["name"].lower().replace("-", "_"))
    if kind is None:
        near = suggest(match["name"], ROUTE_NAMES)
        advice = near or f"use {', '.join(str(known) for known in RouteKind)}"
        raise TopologyError(f"unknown route '{match['name']}': {advice}")
    fields = _fields(match["fields"])
    if kind is RouteKind.HASH and not fields:
        raise TopologyError(f"the route '{text.strip()}' needs columns; write for example hash(user)")
    if kind is not RouteKind.HASH and fields:
        raise TopologyError(f"the route '{match['name']}' takes no columns; only hash(…) does")
    if "" in fields:
        raise TopologyError(f"the route '{text.strip()}' has an empty column name")
    return Route(kind, fields)


def write_route(route: Route) -> str:
    """What `parse_route` reads back as `route`."""
    names = [name if _IDENTIFIER.match(name) else f"`{name}`" for name in route.fields]
    return f"{route.kind}({', '.join(names)})" if names else str(route.kind)


def _fields(text: str | None) -> tuple[str, ...]:
    if text is None or not text.strip():
        return ()
    parts = (part.strip() for part in split_top_level(text))
    return tuple(part[1:-1] if part[:1] == part[-1:] == "`" and len(part) > 1 else part for part in parts)
