"""What `on_error` can promise: a tuple can be replayed only if its source tuple is known, and never at-most-once."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.bolt import has_timers
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.join import Join
from penstock.topology.model import Count, Custom, Delivery, Operator, Topology
from penstock.topology.problems import Problem
from penstock.topology.window import Window
from penstock.validation.graph import operators_in_order

_INSTEAD = "use on_error: dead-letter or drop there, or retry in the operators before it"


def check_on_error(topology: Topology) -> Iterator[Problem]:
    """Operators with `retry` whose tuples do not come from one source tuple each, and delivery that forbids replays."""
    vague = _vague_anchors(topology)
    for operator in topology.operators:
        if not isinstance(operator, Custom) or not operator.retries:
            continue
        subject = f"operator '{operator.name}': on_error: {operator.on_error}"
        if topology.delivery is Delivery.AT_MOST_ONCE:
            yield Problem(
                operator.where,
                f"{subject} replays tuples, and delivery: at-most-once never reads a tuple twice",
                "use on_error: dead-letter or drop, or another delivery",
            )
        if operator.name in vague:
            yield Problem(
                operator.where,
                f"{subject} is impossible: {vague[operator.name]}, so there is no one source tuple to replay",
                _INSTEAD,
            )


def _vague_anchors(topology: Topology) -> dict[str, str]:
    """By operator, why a tuple that enters it does not come from one source tuple; absent where it does."""
    after: dict[str, str] = {}
    before: dict[str, str] = {}
    for operator in operators_in_order(topology):
        reasons = [after[ref.node] for ref in operator.inputs if ref.node in after]
        if reasons:
            before[operator.name] = reasons[0]
        own = _blurs(operator, topology)
        if own or reasons:
            after[operator.name] = own or reasons[0]
    return before


def _blurs(operator: Operator, topology: Topology) -> str:
    """Why a tuple that leaves the operator comes from several tuples that entered it; empty when from one."""
    if isinstance(operator, Count):
        return f"what '{operator.name}' counts comes from many tuples"
    if isinstance(operator, Window):
        return f"what '{operator.name}' computes comes from many tuples"
    if isinstance(operator, Join):
        return f"what '{operator.name}' joins comes from two tuples"
    if isinstance(operator, Custom) and operator.synchronous:
        return f"what '{operator.name}' emits comes from all tuples of an epoch"
    if isinstance(operator, Custom):
        try:
            found = load_user_object(operator.code, topology.folder)
        except TopologyError:
            return ""
        if not isinstance(found, type) and takes_batches(found):
            return f"'{operator.name}' is a function of a batch, and which of its rows a tuple comes from is unknown"
        if has_timers(found):
            return f"what the timers of '{operator.name}' emit comes from no tuple at all"
    return ""
