"""Run a topology from Python: `topology.run()` in a script or a notebook."""

from __future__ import annotations

from penstock.connectors.registry import catalogue
from penstock.errors import TopologyError
from penstock.runtime.run import Outcome, RunSettings, run_topology
from penstock.spark.session import default_master
from penstock.topology.model import Topology
from penstock.validation import validate


def run_here(topology: Topology, master: str | None, fresh: bool, seconds: float | None) -> Outcome:
    """Check the topology, then run it; Spark's session is started and stopped for it."""
    problems = [problem for problem in validate(topology, catalogue()) if problem.severity == "error"]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise TopologyError(f"topology '{topology.name}' is wrong:\n{listed}", tuple(problems))
    return run_topology(topology, RunSettings(master=master or default_master(), fresh=fresh), seconds=seconds)
