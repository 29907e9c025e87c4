"""Configurations over one file of visits, and what comes of reading them."""

from __future__ import annotations

from pathlib import Path

from penstock.topology.dadstorm import read_dadstorm_text
from penstock.topology.model import Operator, Topology
from penstock.topology.problems import Problem

VISITS = '%% visitor, page, seconds\nann, "home", 4\nben, "shop", 12\n'
ONCE = "rep_fact 1 routing random operator_spec"
OP1_DOES = f"OP1 input_ops visits.dat {ONCE}"
OP1 = (
    "OP1 input_ops visits.dat rep_fact 2 routing random address tcp://a:1/op, tcp://a:2/op "
    "operator_spec DUP\n"
)


def read(folder: Path, text: str) -> tuple[Topology | None, list[Problem]]:
    return read_dadstorm_text(text, "visits.config", folder)


def read_well(folder: Path, text: str) -> Topology:
    """The topology of a text in which nothing is wrong or doubtful."""
    topology, problems = read(folder, text)
    assert [str(problem) for problem in problems] == []
    assert topology is not None
    return topology


def only_operator(folder: Path, text: str) -> Operator:
    (operator,) = read_well(folder, text).operators
    return operator


def errors(folder: Path, text: str) -> list[str]:
    topology, problems = read(folder, text)
    found = [str(problem) for problem in problems if problem.severity == "error"]
    assert (topology is None) == bool(found)
    return found
