"""The end of a plan that one process can do: custom code whose tuples go to the only sink."""

from __future__ import annotations

from penstock.plan.graph import Acker, Apply, Plan, Write
from penstock.topology.model import Custom


def code_before_sink(plan: Plan) -> Custom | None:
    """The custom code that gives its tuples to the only sink and to nobody else.

    Not with a key, whose state is another kind of stage, and not with several ports, of which each is another stream.
    """
    writes = [step for step in plan.steps if isinstance(step, Write)]
    if len(writes) != 1 or any(isinstance(step, Acker) for step in plan.steps):
        return None
    step = plan.step(writes[0].input)
    if not isinstance(step, Apply) or not isinstance(step.operator, Custom) or len(plan.readers(step.id)) != 1:
        return None
    operator = step.operator
    return None if operator.key or len(operator.emits) != 1 else operator
