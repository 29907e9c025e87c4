from __future__ import annotations

import pytest

from penstock.topology.model import Count, Dup, Operator, Route, RouteKind, StreamRef, Topology, Uniq
from penstock.topology.problems import Problem
from penstock.topology.routes import parse_route
from penstock.validation.routing import check_routing

IN = (StreamRef("in"),)


def problems(*operators: Operator) -> list[Problem]:
    return list(check_routing(Topology("t", operators=operators)))


def severities(operator: Operator) -> list[str]:
    return [problem.severity for problem in problems(operator)]


@pytest.mark.parametrize("route", ["shuffle", "hash(user)", "all", "global", "local"])
def test_a_stateless_operator_takes_any_route(route: str) -> None:
    assert problems(Dup("o", IN, route=parse_route(route))) == []


def test_global_goes_to_one_instance() -> None:
    [problem] = problems(Dup("o", IN, route=Route(RouteKind.GLOBAL), parallelism=2))
    assert problem.message == ("operator 'o': global sends every tuple to one instance: "
                               "parallelism must be 1 or absent, not 2")
    assert problems(Dup("o", IN, route=Route(RouteKind.GLOBAL), parallelism=1)) == []


def test_hash_needs_fields_unless_the_operator_has_keys() -> None:
    assert severities(Dup("o", IN, route=Route(RouteKind.HASH))) == ["error"]
    assert severities(Uniq("o", IN, keys=("a",), route=Route(RouteKind.HASH))) == []


@pytest.mark.parametrize(("route", "expected"), [
    ("hash(b, A)", []), ("hash(a)", ["error"]), ("hash(a, b, c)", ["error"]), ("all", ["error"]),
    ("shuffle", ["warning"]), ("local", ["warning"]), ("global", ["warning"])])
def test_a_keyed_operator_is_divided_by_its_keys(route: str, expected: list[str]) -> None:
    assert severities(Uniq("o", IN, keys=("a", "b"), route=parse_route(route))) == expected


@pytest.mark.parametrize(("route", "expected"), [
    ("global", []), ("hash(a)", ["error"]), ("all", ["error"]), ("shuffle", ["warning"])])
def test_a_count_of_everything_is_global(route: str, expected: list[str]) -> None:
    assert severities(Count("o", IN, route=parse_route(route))) == expected


@pytest.mark.parametrize("route", ["shuffle", "hash(a)", "all", "global"])
def test_with_one_instance_every_route_leads_there(route: str) -> None:
    assert problems(Count("o", IN, route=parse_route(route), parallelism=1)) == []


@pytest.mark.parametrize("route", [None, Route(RouteKind.SHUFFLE), Route(RouteKind.HASH, ("a",))])
def test_a_count_of_everything_cannot_be_parallel(route: Route | None) -> None:
    [problem] = problems(Count("o", IN, route=route, parallelism=2))
    assert problem.severity == "error"
    assert "a count without keys is made by one instance" in problem.message


def test_keyed_operators_share_one_number_of_state_partitions() -> None:
    [problem] = problems(Uniq("first", IN, keys=("a",), parallelism=2), Count("all", IN, parallelism=1),
                         Count("second", IN, keys=("a",), parallelism=3), Dup("other", IN, parallelism=9),
                         Uniq("free", IN, keys=("a",)))
    assert problem.message.startswith("operator 'second' has parallelism 3 and operator 'first' has 2:")
