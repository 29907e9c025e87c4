"""What may be done in fewer processes when an epoch is small. Both questions are asked once, of the plan."""

from __future__ import annotations

from penstock.plan.graph import Apply, Exchange, Plan, Read, Share, Step
from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import Count, Custom, ErrorKind, Explode, RouteKind
from penstock.topology.window import Window, WindowKind


def sources_to_read_ahead(plan: Plan) -> frozenset[str]:
    """The sources whose small epochs one process may read for all tasks.

    Not those that feed custom code directly: it would run in one task, and only its author knows how long
    a tuple takes. And none where tuples are replayed: what is read ahead cannot do without those that fail. Nor where
    they may be later: their place would be counted otherwise.
    """
    custom = (operator for operator in plan.topology.operators if isinstance(operator, Custom))
    if any(operator.on_error.kind in (ErrorKind.RETRY, ErrorKind.DEAD_LETTER) for operator in custom):
        return frozenset()
    return frozenset(
        step.source.name for step in plan.steps if isinstance(step, Read) and not _feeds_custom_code(step, plan)
    )


def _feeds_custom_code(step: Step, plan: Plan) -> bool:
    for reader in plan.readers(step.id):
        if isinstance(reader, Apply) and isinstance(reader.operator, Custom):
            return True
        if not isinstance(reader, Exchange | Share) and _feeds_custom_code(reader, plan):
            return True
    return False


def output_is_bounded(plan: Plan) -> bool:
    """Whether each sink gets at most as many tuples as the sources gave, so that few in means few out."""
    return not any(_multiplies(step) for step in plan.steps)


def _multiplies(step: Step) -> bool:
    match step:
        case Exchange(route=route):
            return route.kind is RouteKind.ALL
        case Apply(operator=Custom() | Explode() | Count(emit="each") | Join() | Enrich()):
            return True
        case Apply(operator=Window(emit=emit, span=span, code=code)):
            # What appears may have come in many epochs before.
            return emit != "changes" or span.kind is WindowKind.SLIDING or code is not None
    return False
