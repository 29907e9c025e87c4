from __future__ import annotations

import pytest

from penstock.errors import TopologyError
from penstock.topology.model import Route, RouteKind
from penstock.topology.routes import parse_route, write_route


@pytest.mark.parametrize(("text", "kind", "fields"), [
    ("shuffle", RouteKind.SHUFFLE, ()),
    ("random", RouteKind.SHUFFLE, ()),
    ("round_robin", RouteKind.SHUFFLE, ()),
    ("Round-Robin", RouteKind.SHUFFLE, ()),
    ("hash(user)", RouteKind.HASH, ("user",)),
    (" hash ( user , url ) ", RouteKind.HASH, ("user", "url")),
    ("fields(a,b)", RouteKind.HASH, ("a", "b")),
    ("same_key(a)", RouteKind.HASH, ("a",)),
    ("hashing(`a, b`)", RouteKind.HASH, ("a, b",)),
    ("all", RouteKind.ALL, ()),
    ("broadcast", RouteKind.ALL, ()),
    ("global", RouteKind.GLOBAL, ()),
    ("primary", RouteKind.GLOBAL, ()),
    ("local", RouteKind.LOCAL, ()),
    ("local_or_shuffle()", RouteKind.LOCAL, ()),
])
def test_a_route_is_known_by_all_its_names(text: str, kind: RouteKind, fields: tuple[str, ...]) -> None:
    assert parse_route(text) == Route(kind, fields)


@pytest.mark.parametrize(("text", "message"), [
    ("shufle", "unknown route 'shufle': did you mean 'shuffle'?"),
    ("somewhere", "unknown route 'somewhere': use shuffle, hash, all, global, local"),
    ("hash", "needs columns"),
    ("hash()", "needs columns"),
    ("hash(a,,b)", "empty column name"),
    ("all(user)", "takes no columns"),
    ("hash(user", "is not a route"),
])
def test_a_wrong_route_says_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_route(text)
    assert message in str(caught.value)


def test_a_written_route_reads_back_with_any_column_name() -> None:
    route = Route(RouteKind.HASH, ("user", "two, words", "π"))
    assert parse_route(write_route(route)) == route
