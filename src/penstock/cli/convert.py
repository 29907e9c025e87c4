"""`penstock convert`: a topology of any form as YAML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.loading import topology_path
from penstock.cli.screen import show_problems


def convert(
    file: Annotated[Path, typer.Argument(help="A DADSTORM .config, or a topology in Python or YAML.")],
) -> None:
    """Print a topology as YAML: `penstock convert dadstorm.config > topology.yaml`."""
    from penstock.connectors.registry import catalogue
    from penstock.topology.loading import load_topology
    from penstock.topology.yaml_writer import write_topology

    topology, problems = load_topology(topology_path(file), catalogue())
    show_problems(problems)
    if topology is None or any(problem.severity == "error" for problem in problems):
        sys.exit(2)
    sys.stdout.write(write_topology(topology))
