"""Routes and parallelism that contradict each other, or what an operator has to remember."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.topology.join import Join
from penstock.topology.model import Count, Operator, Route, RouteKind, Topology
from penstock.topology.problems import Problem
from penstock.validation.columns import keys_of


def check_routing(topology: Topology) -> Iterator[Problem]:
    """Routes that cannot be followed, and parallelism that Spark's state cannot have."""
    for operator in topology.operators:
        if isinstance(operator, Join):  # its own check knows why it has no route
            continue
        if operator.route is not None:
            yield from _check_route(operator, operator.route)
        elif _counts_all(operator) and _many(operator):
            yield _one_instance(operator, "a count without keys is made by one instance")
    yield from _check_state_partitions(topology)


def _check_route(operator: Operator, route: Route) -> Iterator[Problem]:
    subject = f"operator '{operator.name}'"
    if route.kind not in list(RouteKind):
        yield Problem(operator.where, f"{subject}: unknown route '{route}'", f"use {', '.join(RouteKind)}")
    elif route.kind == RouteKind.GLOBAL and _many(operator):
        yield _one_instance(operator, "global sends every tuple to one instance")
    elif route.kind == RouteKind.HASH and not route.fields and not operator.stateful:
        yield Problem(operator.where, f"{subject}: the route hash needs the fields to divide by",
                      "write for example hash(user)")
    elif operator.stateful and operator.parallelism != 1:
        yield from _check_stateful_route(operator, route)


def _check_stateful_route(operator: Operator, route: Route) -> Iterator[Problem]:
    """An operator that remembers keys must see all tuples of a key in one instance.

    `all` and a hash on other fields ask for something else, and are errors. The other routes say only
    that the user does not mind how tuples are divided: they come to no harm, so that is a warning.
    """
    keys = keys_of(operator)
    subject = f"operator '{operator.name}'"
    needed = f"hash({', '.join(keys)})" if keys else "global"
    why = "must see all tuples of a key in one instance" if keys else "must see all tuples in one instance"
    hint = f"use {needed}, or leave the route out"
    if route.kind == RouteKind.ALL:
        yield Problem(operator.where, f"{subject}: with the route all every instance of {operator.keyword} "
                                      "would see every tuple, and the result would be repeated", hint)
    elif _counts_all(operator) and _many(operator):
        yield _one_instance(operator, "a count without keys is made by one instance")
    elif route.kind == RouteKind.HASH:
        if route.fields and {name.lower() for name in route.fields} != {key.lower() for key in keys}:
            yield Problem(operator.where, f"{subject}: {operator.keyword} {why}, so {route} is impossible",
                          hint)
    elif not (route.kind == RouteKind.GLOBAL and not keys):
        yield Problem(operator.where, f"{subject}: {operator.keyword} {why}, so its route is {needed} and "
                                      f"not {route}", hint, "warning")


def _check_state_partitions(topology: Topology) -> Iterator[Problem]:
    """Spark keeps the state of a whole query in one number of partitions."""
    keyed = [operator for operator in topology.operators if operator.stateful and operator.parallelism is not None
             and (keys_of(operator) or isinstance(operator, Join))]
    for operator in keyed[1:]:
        first = keyed[0]
        if operator.parallelism != first.parallelism:
            yield Problem(operator.where,
                          f"operator '{operator.name}' has parallelism {operator.parallelism} and operator "
                          f"'{first.name}' has {first.parallelism}: Spark divides the state of all uniq and "
                          "count operators of a topology into the same number of parts",
                          "give both the same parallelism")


def _counts_all(operator: Operator) -> bool:
    return isinstance(operator, Count) and not operator.keys


def _many(operator: Operator) -> bool:
    return isinstance(operator.parallelism, int) and operator.parallelism > 1


def _one_instance(operator: Operator, why: str) -> Problem:
    return Problem(operator.where, f"operator '{operator.name}': {why}: parallelism must be 1 or absent, "
                                   f"not {operator.parallelism}")
