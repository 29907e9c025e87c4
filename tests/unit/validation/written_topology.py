"""A topology in a file, with Python beside it, as a user has them."""

from __future__ import annotations

from pathlib import Path

from penstock.connectors.registry import catalogue
from penstock.topology.loading import load_topology
from penstock.validation import validate


def problems_of(folder: Path, own_code: str, delivery: str, flow: str) -> list[str]:
    """What is wrong with a topology of a source `s` and then the `flow`; its custom code is in `own:`."""
    (folder / "own.py").write_text(own_code)
    file = folder / "topology.yaml"
    source = "  s: {generator: {id: sequence}, count: 3}"
    file.write_text(f"topology: t\ndelivery: {delivery}\nsources:\n{source}\n{flow}\n")
    topology, problems = load_topology(file, catalogue())
    assert topology is not None
    return [str(problem) for problem in (*problems, *validate(topology, catalogue()))]
