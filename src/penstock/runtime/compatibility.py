"""Whether a topology can go on from a checkpoint that an earlier version of it left.

Spark finds a source's offsets and an operator's state by their place in the plan. What is not kept in the checkpoint
(filters, custom code, epochs, delivery, where sinks write to) may change freely between two starts. A sink more or less
may not: Spark reads a source once for every branch that begins there.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.epochs.record import EpochRecord
from penstock.errors import TopologyError
from penstock.plan.graph import Acker, Apply, Plan, Read, Step, Write, build_plan
from penstock.plan.pruning import columns_needed
from penstock.plan.rewrites import rewrite
from penstock.plan.state_ids import state_ids
from penstock.runtime.checkpoint import newest_epoch
from penstock.runtime.instances import asked_instances, instances
from penstock.runtime.state_folder import StateFolder
from penstock.topology.join import Join
from penstock.topology.model import Count, Custom, Operator, Topology, Uniq
from penstock.topology.window import Window
from penstock.validation import stream_schemas
from penstock.validation.port_schemas import port_schemas

Shape = dict[str, Any]


def shape_of(topology: Topology, state_partitions: int) -> Shape:
    """What a checkpoint depends on, as JSON."""
    plan = rewrite(build_plan(topology))
    return {
        "sources": {
            source.name: {"kind": source.kind, "reads": str(source.options.get(source.kind, ""))}
            for source in topology.sources
        },
        "state": {
            operator.name: _state(operator) | _columns_kept(operator, plan)
            for operator in topology.operators
            if operator.stateful
        },
        "state partitions": state_partitions,
        "asked instances": asked_instances(topology),
        "state ids": list(state_ids(plan)),
        "branches": [_drawn_on(step, plan) for step in plan.steps if isinstance(step, Write | Acker)],
        "acking": sorted(plan.self_acking),
    }


def _drawn_on(step: Step, plan: Plan) -> list[str]:
    """The sources and the state that lie before a step, as Spark meets them on its way up."""
    match step:
        case Read(source=source):
            own = [source.name]
        case Apply(operator=operator) if operator.stateful:
            own = [operator.name]
        case _:
            own = []
    return [*(name for each in step.reads() for name in _drawn_on(plan.step(each), plan)), *own]


def _columns_kept(operator: Operator, plan: Plan) -> Shape:
    """The columns of waiting tuples: a join keeps those that something behind it looks at, as far as they are known."""
    if not isinstance(operator, Join) or not any(step.id == operator.name for step in plan.steps):
        return {}
    apply = plan.step(operator.name)
    needed = columns_needed(plan)[apply.reads()[0]]
    schemas = port_schemas(operator, stream_schemas(plan.topology))
    columns = (
        f"{port}.{name}"
        for port, schema in schemas.items()
        if schema is not None
        for name in schema.names
        if needed is None or name.lower() in needed
    )
    return {"columns": list(columns)}


def _state(operator: Operator) -> Shape:
    if isinstance(operator, Window):
        # The lateness may change: it only says when what is kept goes.
        return {
            "kind": operator.keyword,
            "window": str(operator.span),
            "on": operator.on or ("the number of tuples" if operator.counts_tuples else "the time of epochs"),
            "keys": list(operator.keys),
            # The user's function is given whole tuples, and may change.
            "compute": list(operator.compute) if operator.code is None else "a function of the tuples",
            "emit": operator.emit,
            # Where late tuples go is nothing to the state.
            "late": "drop" if operator.forgets else operator.late,
        }
    if isinstance(operator, Join):
        # How long tuples are kept may change, and when they are too late.
        return {
            "kind": operator.keyword,
            "ports": list(dict.fromkeys(operator.input_ports)),
            "condition": operator.condition,
            "on": [" ".join(pair).strip() for pair in operator.on] or "the time of epochs",
            "join": operator.kind,
        }
    if isinstance(operator, Custom):
        # What the code keeps of a key may change: it is one piece to Spark, and the code's own business.
        return {"kind": operator.keyword, "key": list(operator.key)}
    keys = list(operator.keys) if isinstance(operator, Count | Uniq) else []
    return {"kind": operator.keyword, "keys": keys} | (
        {"emit": operator.emit} if isinstance(operator, Count) else {}
    )


def changes(old: Shape, new: Shape) -> list[str]:
    """What has changed that the checkpoint cannot follow, in the user's terms; nothing when it can."""
    said = [
        *_between("source", old["sources"], new["sources"]),
        *_between("stateful operator", old["state"], new["state"]),
        # Without state nothing is kept by partition: such a topology may go on with more cores or fewer.
        *(_number(old["state partitions"], new["state partitions"]) if new["state"] else []),
    ]
    before, now = (", ".join(shape.get("acking", [])) or "none" for shape in (old, new))
    if before != now:
        said.append(f"the operators that ack by themselves were {before}, now {now}")
    if not said and old.get("branches", new["branches"]) != new["branches"]:
        before, now = ("; ".join(" → ".join(names) for names in shape["branches"]) for shape in (old, new))
        said.append(f"the sinks hang on other branches, or in another order: {before}, now {now}")
    return said


def remembered_shape(state: StateFolder) -> Shape | None:
    """The shape that the checkpoint was made with; None when there is no epoch to go on from."""
    if newest_epoch(state.checkpoint) is None or not state.shape.exists():
        return None
    shape: Shape = json.loads(state.shape.read_text())
    return shape


def checked_shape(topology: Topology, state: StateFolder, cores: int) -> Shape:
    """The shape of the topology, for a start on so many cores; raises TopologyError if it cannot go on from there."""
    remembered = remembered_shape(state)
    new = shape_of(topology, instances(topology, cores, remembered))
    changed = [] if remembered is None else changes(remembered, new)
    if changed:
        listed = "\n".join(f"  {change}" for change in changed)
        raise TopologyError(
            f"topology '{topology.name}' has changed since its epoch {state.committed().epoch}, and what it remembers "
            f"in {state.path} does not fit any more:\n{listed}\n  change it back to go on from there, or start anew "
            "with --fresh"
        )
    return new


def check_log(topology: Topology, newest: EpochRecord | None, address: str) -> None:
    """Raises TopologyError when the epoch log, whose newest record this is, is of a topology with other sources."""
    sources = {source.name for source in topology.sources}
    if newest is not None and not newest.ends.keys() <= sources:
        raise TopologyError(
            f"the epoch log at {address} is of another topology '{topology.name}': its sources are "
            f"{', '.join(sorted(newest.ends))}, and here {', '.join(sorted(sources))}; give this one another name or "
            "another coordinator, or have the log forgotten with --fresh"
        )


def _between(what: str, old: Shape, new: Shape) -> list[str]:
    said = [f"{what} '{name}' is new" for name in new if name not in old]
    said += [f"{what} '{name}' is gone" for name in old if name not in new]
    for name in (name for name in new if name in old):
        said += [
            f"{what} '{name}': {key} was {_shown(old[name].get(key))}, now {_shown(new[name].get(key))}"
            for key in new[name]
            if old[name].get(key) != new[name].get(key)
        ]
    if not said and list(old) != list(new):
        said.append(f"the {what}s stand in another order: {', '.join(old)}, now {', '.join(new)}")
    return said


def _number(old: int, new: int) -> list[str]:
    if old == new:
        return []
    return [f"the parallelism of stateful operators was {old}, now {new}; `penstock rescale` divides their state anew"]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
