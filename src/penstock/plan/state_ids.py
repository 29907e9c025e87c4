"""Which operator's state Spark keeps under which number. Pure.

Spark numbers the stateful operators of its plan from the sinks upwards, branch by branch. A stateful operator that
several sinks draw on stands in each of their branches, and has as many numbers and as many copies of its state.
"""

from __future__ import annotations

from penstock.plan.graph import Acker, Apply, Plan, Step, Write
from penstock.topology.model import Operator
from penstock.topology.window import Window


def state_ids(plan: Plan) -> tuple[str, ...]:
    """The operators' names, at the place of their number."""
    ends = (step for step in plan.steps if isinstance(step, Write | Acker))
    return tuple(name for end in ends for name in _met(end, plan))


def remembering(operator: Operator) -> tuple[str, ...]:
    """What keeps state for an operator, by name, the last in the way of the tuples first."""
    if isinstance(operator, Window) and operator.every > 1:
        return f"{operator.name}.early", operator.name
    return (operator.name,) if operator.stateful else ()


def _met(step: Step, plan: Plan) -> list[str]:
    """The stateful operators from a step upwards, as Spark meets them."""
    own = remembering(step.operator) if isinstance(step, Apply) else ()
    return [*own, *(name for each in step.reads() for name in _met(plan.step(each), plan))]
