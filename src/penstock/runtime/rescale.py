"""Divide what the stateful operators of a topology remember over another number of instances.

A copy of the checkpoint is divided, in links where the disk allows it, and put in the place of the old one at the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.errors import CoordinationError, MachineError, TopologyError
from penstock.runtime.instances import asked_instances
from penstock.runtime.run import RunSettings
from penstock.runtime.snapshots import epoch_of_batch
from penstock.runtime.state_files import keep_newest, link_checkpoint, newest_committed, state_partitions
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.swap import settle, swapped
from penstock.runtime.tool_session import tool_session
from penstock.spark.stored_state import divide_state
from penstock.topology.model import Topology
from penstock.topology.problems import suggest

_STOP_SECONDS = 120.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Rescaled:
    """What a rescale has done."""

    epoch: int
    before: int
    after: int
    operators: tuple[str, ...]
    """All stateful operators: one number holds for all of them."""
    stopped: bool
    """Whether the topology was running, and was stopped for it."""


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


def rescale(
    topology: Topology,
    operator: str,
    instances: int,
    settings: RunSettings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Rescaled:
    """Divide the state anew; a running topology is asked to stop first, at the end of an epoch.

    It is one number for all stateful operators. Killed at any moment it leaves the old division or the new one.
    """
    check_rescale(topology, operator, instances)
    run = settings or RunSettings()
    state = StateFolder.of(topology, run.state)
    stopped = _stop_running(state, say)
    with state.held() as lock:
        settle(state)
        batch, before = _present(topology, state)
        epoch = epoch_of_batch(state.checkpoint, batch).epoch
        if before != instances:
            with swapped(state) as prepared:
                target = prepared / "checkpoint"
                link_checkpoint(state.checkpoint, batch, target, target)
                with tool_session(topology.name, state, run, lock, say) as spark:
                    say(f"dividing the state of epoch {epoch} over {instances} instances instead of {before}")
                    divide_anew(spark, target, instances)
                keep_newest(target, state.checkpoint)
                shape = json.loads(state.shape.read_text())
                shape |= {"state partitions": instances, "asked instances": asked_instances(topology)}
                (prepared / "shape").write_text(json.dumps(shape))
    operators = tuple(op.name for op in topology.operators if op.stateful)
    return Rescaled(epoch, before, instances, operators, stopped)


def divide_anew(spark: SparkSession, checkpoint: Path, instances: int) -> None:
    """Divide a checkpoint that nobody uses; raises MachineError in plain words when Spark cannot."""
    try:
        divide_state(spark, checkpoint, instances)
    except Exception as error:
        said = str(error).splitlines()[0]
        raise MachineError(
            f"Spark could not divide the state: {said}\n  nothing was changed; the topology goes on as it is"
        ) from error


def _present(topology: Topology, state: StateFolder) -> tuple[int, int]:
    """The newest committed batch, and over how many instances its state is divided."""
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
    return batch, state_partitions(state.checkpoint, batch)


def _stop_running(state: StateFolder, say: Callable[[str], None]) -> bool:
    """Ask a run of this topology to stop at the end of its epoch, and wait for it; whether there was one."""
    process = state.running()
    if process is None:
        return False
    say(f"asking process {process}, which runs it, to stop at the end of its epoch")
    state.ask_to_stop(process)
    deadline = time.monotonic() + _STOP_SECONDS
    while state.running() == process:
        if time.monotonic() > deadline:
            raise CoordinationError(
                f"process {process} has not stopped within {_STOP_SECONDS:g} s; stop it, and try again"
            )
        time.sleep(_PAUSE_SECONDS)
    return True
