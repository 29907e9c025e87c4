"""Rewrites of the plan: each a pure function from plan to plan that surely gives the same results.

Each leaves a note in `Plan.notes`, so that `penstock plan` can say what became of what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from penstock.plan.emptiness import without_counting
from penstock.plan.graph import Acker, Apply, Exchange, Plan, Port, Read, Share, Step, Write, route_of_state
from penstock.topology.model import Dup, Filter, RouteKind, Union

Rewrite = Callable[[Plan], Plan]


def rewrite(plan: Plan) -> Plan:
    """Apply all rewrites until none finds anything more to do."""
    while True:
        before = plan.steps
        for each in REWRITES:
            plan = each(plan)
        if plan.steps == before:
            return plan


def drop_unneeded(plan: Plan) -> Plan:
    """Drop the steps that lead to no sink: nobody could see what they compute.

    A bolt that acks by itself stays: it writes somewhere on its own, or it would have nothing to wait for.
    """
    needed: set[str] = set()
    for step in reversed(plan.steps):
        if isinstance(step, Write | Acker) or step.id in needed:
            needed.update((step.id, *step.reads()))
    notes = [f"dropped '{step.id}': no sink needs it" for step in plan.steps
             if step.id not in needed and isinstance(step, Read | Apply)]
    return _noted(plan, (step for step in plan.steps if step.id in needed), notes)


def drop_pass_through(plan: Plan) -> Plan:
    """Drop `dup` and `union`: several inputs are a Merge already, and one input passes unchanged."""
    idle = [step for step in plan.steps if isinstance(step, Apply) and isinstance(step.operator, Dup | Union)]
    notes = [f"dropped {step.operator.keyword} '{step.id}': it passes every tuple on unchanged"
             for step in idle]
    return _bypass(plan, {step.id: step.input for step in idle}, notes)


def drop_local_routes(plan: Plan) -> Plan:
    """Drop `local` routes: tuples that stay where they are need no exchange."""
    local = [step for step in plan.steps
             if isinstance(step, Exchange) and step.route.kind is RouteKind.LOCAL]
    notes = [f"dropped '{step.id}': a local route moves nothing" for step in local]
    return _bypass(plan, {step.id: step.input for step in local}, notes)


def drop_routes_of_state(plan: Plan) -> Plan:
    """Drop a route that an operator with state repeats: Spark exchanges by the key of the state itself.

    How many instances the state has is fixed for the whole query, so a parallelism written here could
    not change it: keeping the route would only shuffle twice.
    """
    repeated = [step for step in plan.steps if isinstance(step, Exchange) and _state_repeats(plan, step)]
    notes = [f"dropped '{step.id}' {step.route}: the state of '{plan.readers(step.id)[0].id}' "
             "divides its input so anyway" for step in repeated]
    return _bypass(plan, {step.id: step.input for step in repeated}, notes)


def drop_overridden_exchanges(plan: Plan) -> Plan:
    """Drop an exchange that only another exchange reads: nothing sees the first division.

    Not for `all`, which hands every tuple to every instance and so makes copies.
    """
    overridden = {step.id: step.input for step in plan.steps if isinstance(step, Exchange)
                  and step.route.kind is not RouteKind.ALL and _only_exchanged_again(plan, step)}
    notes = [f"dropped '{gone}': '{plan.readers(gone)[0].id}' divides the same tuples again"
             for gone in overridden]
    return _bypass(plan, overridden, notes)


def drop_idle_shares(plan: Plan) -> Plan:
    """Drop the Shares that other rewrites left with one reader: nothing is shared."""
    idle = [step for step in plan.steps if isinstance(step, Share) and len(plan.readers(step.id)) < 2]
    notes = [f"dropped '{step.id}': one reader is left" for step in idle]
    return _counted(_bypass(plan, {step.id: step.input for step in idle}, notes))


def drop_repeated_shares(plan: Plan) -> Plan:
    """Drop a Share of a Share, or of a port of one: a port only selects from what is computed once.

    Runs after `drop_idle_shares`, so that the upper of the two is there to stay.
    """
    repeated = [step for step in plan.steps if isinstance(step, Share) and _shared_above(plan, step)]
    notes = [f"dropped '{step.id}': '{step.input}' comes from a shared stream already" for step in repeated]
    return _counted(_bypass(plan, {step.id: step.input for step in repeated}, notes))


def ask_for_emptiness(plan: Plan) -> Plan:
    """Have filters that compare the length of a text with zero ask for its bytes: nobody needs its characters."""
    steps, notes = [], []
    for step in plan.steps:
        if isinstance(step, Apply) and isinstance(step.operator, Filter):
            sooner = without_counting(step.operator.condition)
            if sooner != step.operator.condition:
                step = replace(step, operator=replace(step.operator, condition=sooner))
                notes.append(f"'{step.id}' asks whether a text is empty: its characters are not counted")
        steps.append(step)
    return _noted(plan, steps, notes)


REWRITES: tuple[Rewrite, ...] = (
    drop_unneeded,
    drop_pass_through,
    drop_local_routes,
    drop_routes_of_state,
    drop_overridden_exchanges,
    drop_idle_shares,
    drop_repeated_shares,
    ask_for_emptiness,
)
"""In the order in which they run."""


def _state_repeats(plan: Plan, exchange: Exchange) -> bool:
    readers = plan.readers(exchange.id)
    if len(readers) != 1 or not isinstance(readers[0], Apply):
        return False
    own = route_of_state(readers[0].operator)
    return (own is not None and own.kind is exchange.route.kind
            and set(own.fields) == set(exchange.route.fields))


def _only_exchanged_again(plan: Plan, exchange: Exchange) -> bool:
    readers = plan.readers(exchange.id)
    return (len(readers) == 1 and isinstance(readers[0], Exchange)
            and readers[0].route.kind is not RouteKind.LOCAL)


def _shared_above(plan: Plan, share: Share) -> bool:
    above = plan.step(share.input)
    while isinstance(above, Port):
        above = plan.step(above.input)
    return isinstance(above, Share)


def _counted(plan: Plan) -> Plan:
    """The plan with every Share knowing its present number of readers."""
    steps = (replace(step, consumers=len(plan.readers(step.id))) if isinstance(step, Share) else step
             for step in plan.steps)
    return _noted(plan, steps, [])


def _bypass(plan: Plan, instead: Mapping[str, str], notes: Iterable[str]) -> Plan:
    """Take steps out; who read them reads `instead[id]`, or what that one's own bypass leads to."""
    def settle(step_id: str) -> str:
        while step_id in instead:
            step_id = instead[step_id]
        return step_id

    final = {gone: settle(gone) for gone in instead}
    return _noted(plan, (step.redirected(final) for step in plan.steps if step.id not in final), notes)


def _noted(plan: Plan, steps: Iterable[Step], notes: Iterable[str]) -> Plan:
    return Plan(plan.topology, tuple(steps), (*plan.notes, *notes))
