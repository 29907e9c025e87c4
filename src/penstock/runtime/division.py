"""Divide the state in a state folder over another number of instances: all of it at once, or nothing.

A copy of the checkpoint is divided, in links where the disk allows it, and put in the place of the old one at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.errors import CoordinationError, MachineError, TopologyError
from penstock.runtime.instances import asked_instances
from penstock.runtime.snapshots import epoch_of_batch
from penstock.runtime.state_files import keep_newest, link_checkpoint, newest_committed, state_partitions
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.swap import swapped
from penstock.spark.stored_state import divide_state, forget_loaded_state
from penstock.topology.model import Topology
from penstock.topology.problems import suggest


@dataclass(frozen=True)
class Rescaled:
    """What a rescale has done."""

    epoch: int
    before: int
    after: int
    operators: tuple[str, ...]
    """All stateful operators: one number holds for all of them."""
    stopped: bool = False
    """Whether the topology was running, and was stopped for it."""
    went_on: bool = False
    """Whether the topology was running, and runs on with the new number."""


def check_rescale(topology: Topology, operator: str, instances: int) -> None:
    """Raises TopologyError for an operator without state, one that does not exist, or an impossible number."""
    if instances < 1:
        raise TopologyError(f"'{operator}={instances}': an operator needs at least one instance")
    found = next((op for op in topology.operators if op.name == operator), None)
    stateful = [op.name for op in topology.operators if op.stateful]
    if found is None:
        names = [op.name for op in topology.operators]
        advice = suggest(operator, names) or f"there are: {', '.join(names) or 'none'}"
        raise TopologyError(f"there is no operator '{operator}' in topology '{topology.name}'; {advice}")
    if not found.stateful:
        with_state = f"; with state there are: {', '.join(stateful)}" if stateful else ""
        raise TopologyError(
            f"operator '{operator}' remembers nothing that could be divided: change its `parallelism` in the file, and "
            f"start again{with_state}"
        )


def present_division(topology: Topology, state: StateFolder) -> Rescaled:
    """How the state is divided, as a rescale that changes nothing; CoordinationError when there is none to divide."""
    return _present(topology, state)[1]


def divide_held(
    topology: Topology,
    state: StateFolder,
    instances: int,
    session: Callable[[], AbstractContextManager[SparkSession]],
    say: Callable[[str], None] = lambda _: None,
) -> Rescaled:
    """Divide the state anew; only for who holds the state folder, and while no query uses the checkpoint.

    `session` gives Spark, and is not asked for it when the state is divided like that already. Raises CoordinationError
    when there is no state to divide, MachineError when Spark cannot; then nothing has changed.
    """
    batch, present = _present(topology, state)
    if present.after != instances:
        with swapped(state) as prepared, session() as spark:
            say(f"dividing the state of epoch {present.epoch} over {instances} instances instead of {present.before}")
            target = prepared / "checkpoint"
            forget_loaded_state(spark)
            link_checkpoint(state.checkpoint, batch, target, target)
            divide_anew(spark, target, instances)
            keep_newest(target, state.checkpoint)
            shape = json.loads(state.shape.read_text())
            shape |= {"state partitions": instances, "asked instances": asked_instances(topology)}
            (prepared / "shape").write_text(json.dumps(shape))
    return replace(present, after=instances)


def divide_anew(spark: SparkSession, checkpoint: Path, instances: int) -> None:
    """Divide a checkpoint that nobody uses; raises MachineError in plain words when Spark cannot."""
    try:
        divide_state(spark, checkpoint, instances)
    except Exception as error:
        said = str(error).splitlines()[0]
        raise MachineError(
            f"Spark could not divide the state: {said}\n  nothing was changed; the topology goes on as it is"
        ) from error


def _present(topology: Topology, state: StateFolder) -> tuple[int, Rescaled]:
    """The newest committed batch, and how its state is divided."""
    batch = newest_committed(state.checkpoint)
    if batch is None or not state.shape.exists():
        raise CoordinationError(
            f"topology '{topology.name}' has committed no epoch yet, so there is no state in {state.path} to divide: "
            "set `parallelism` in the file"
        )
    if state.committed().ended:
        raise CoordinationError(
            f"topology '{topology.name}' has come to the end of its input: its next start begins anew, without what is "
            f"in {state.path}"
        )
    instances = state_partitions(state.checkpoint, batch)
    operators = tuple(op.name for op in topology.operators if op.stateful)
    return batch, Rescaled(epoch_of_batch(state.checkpoint, batch).epoch, instances, instances, operators)
