"""Run a topology from Python, and handle what it remembers: `topology.run()` in a script or a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.connectors.registry import catalogue, misconfigured
from penstock.errors import TopologyError
from penstock.runtime.backup import back_up
from penstock.runtime.division import Rescaled
from penstock.runtime.manifest import Manifest
from penstock.runtime.rescale import rescale
from penstock.runtime.restore import RestoreSettings, look_at, restore
from penstock.runtime.run import Outcome, RunSettings, run_topology
from penstock.runtime.snapshots import take_snapshot
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.state_view import opened_state
from penstock.spark.session import default_master
from penstock.topology.model import Topology
from penstock.validation import validate


def run_here(topology: Topology, master: str | None, fresh: bool, seconds: float | None) -> Outcome:
    """Check the topology, then run it; Spark's session is started and stopped for it."""
    _check(topology)
    return run_topology(topology, RunSettings(master=master or default_master(), fresh=fresh), seconds=seconds)


def checkpoint_here(topology: Topology, name: str | None) -> Manifest:
    state = StateFolder.of(topology)
    return take_snapshot(state, topology.name, state.coordinator, name)


def backup_here(topology: Topology, folder: Path, checkpoint: str | None) -> Manifest:
    state = StateFolder.of(topology)
    return back_up(state, topology.name, state.coordinator, folder.absolute(), checkpoint)


def restore_here(
    topology: Topology, folder: Path, parallelism: int | None, replace: bool, fresh_sinks: bool
) -> list[str]:
    """Check the topology and the backup, then restore it; what to know about it."""
    _check(topology)
    run = RunSettings()
    found = look_at(topology, RestoreSettings(folder.absolute(), parallelism, replace, fresh_sinks), run)
    restore(found, run)
    return found.notes


def rescale_here(topology: Topology, operator: str, instances: int) -> Rescaled:
    return rescale(topology, operator, instances)


def state_here(topology: Topology, operator: str) -> list[dict[str, Any]]:
    with opened_state(topology, operator) as found:
        return [row.asDict() for row in found.rows.collect()]


def _check(topology: Topology) -> None:
    found = (*validate(topology, catalogue()), *misconfigured(topology))
    problems = [problem for problem in found if problem.severity == "error"]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise TopologyError(f"topology '{topology.name}' is wrong:\n{listed}", tuple(problems))
