from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.registry import catalogue
from penstock.topology.loading import load_topology
from penstock.topology.model import Delivery

PYTHON = """
from penstock import Topology
topology = Topology("numbers").source("n", generator={"n": "sequence"}, count=3).sink("out", console=None)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "topology.py"
    path.write_text(PYTHON)
    return path


def test_values_of_a_python_topology_can_be_set_from_outside(file: Path) -> None:
    topology, problems = load_topology(file, catalogue(), {"delivery": "at-least-once", "epoch.max_tuples": "7"})
    assert problems == []
    assert topology is not None
    assert topology.delivery is Delivery.AT_LEAST_ONCE
    assert topology.epoch.max_tuples == 7
    assert topology.folder == file.parent


def test_a_value_that_a_python_topology_has_not_is_a_problem(file: Path) -> None:
    topology, (problem,) = load_topology(file, catalogue(), {"delivry": "at-least-once"})
    assert topology is None
    assert "did you mean 'delivery'?" in str(problem)
