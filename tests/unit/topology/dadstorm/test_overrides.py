"""`--set` on a DADSTORM configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.topology.dadstorm import read_dadstorm
from penstock.topology.model import Delivery, Topology

OP1 = "OP1 input_ops visits.dat rep_fact 2 routing random operator_spec DUP"


def override(tmp_path: Path, **overrides: str) -> tuple[Topology | None, list[str]]:
    (tmp_path / "visits.dat").write_text("ann, home, 4\n")
    (tmp_path / "v.config").write_text(OP1)
    paths = {path.replace("__", "."): value for path, value in overrides.items()}
    topology, problems = read_dadstorm(tmp_path / "v.config", paths)
    return topology, [str(problem) for problem in problems]


def test_values_can_be_set_from_outside(tmp_path: Path) -> None:
    topology, problems = override(
        tmp_path,
        delivery="at-most-once",
        logging="full",
        operators__OP1__parallelism="4",
        epoch__max_tuples="10",
        sources__visits__on_malformed="drop",
        topology="other",
    )
    assert problems == []
    assert topology is not None
    assert (topology.name, topology.delivery, topology.logging) == ("other", Delivery.AT_MOST_ONCE, "full")
    assert (topology.operators[0].parallelism, topology.epoch.max_tuples) == (4, 10)
    assert topology.sources[0].on_malformed == "drop"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("delivry", "x", "did you mean 'delivery'?"),
        ("operators__OP11__parallelism", "4", "did you mean 'OP1'?"),
        ("operators__OP1__parallelsm", "4", "did you mean 'parallelism'?"),
        ("operators__OP1__parallelism", "many", "'many' is not a whole number"),
        ("operators__OP1__parallelism", "0", "too small"),
    ],
)
def test_a_value_that_cannot_be_set_is_a_problem(
    tmp_path: Path, path: str, value: str, expected: str
) -> None:
    topology, (problem,) = override(tmp_path, **{path: value})
    assert topology is None
    assert problem.startswith("--set ")
    assert expected in problem
