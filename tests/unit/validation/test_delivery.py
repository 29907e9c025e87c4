"""A promise that a sink cannot keep is refused, with the sinks that could keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.base import EVERY_GUARANTEE
from penstock.connectors.registry import SINKS

from .written_topology import problems_of

OWN = """
from penstock.connectors.base import EVERY_GUARANTEE, SinkConnector

class Careless(SinkConnector):
    configure = stage = commit = None

class Careful(Careless):
    keeps = EVERY_GUARANTEE
"""


def refusals(folder: Path, delivery: str, sink: str) -> list[str]:
    return problems_of(folder, OWN, delivery, f'sinks:\n  out: {{from: s, custom: "own:{sink}"}}')


@pytest.mark.parametrize("delivery", ["at-most-once", "at-least-once"])
def test_a_sink_of_ones_own_is_trusted_with_the_weaker_promises(tmp_path: Path, delivery: str) -> None:
    assert refusals(tmp_path, delivery, "Careless") == []


def test_a_sink_that_does_not_claim_exactly_once_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (problem,) = refusals(tmp_path, "exactly-once", "Careless")
    assert "topology.yaml:6: sink 'out': own:Careless cannot keep exactly-once" in problem
    assert "file, sql, console, memory can; or set delivery: at-least-once" in problem


def test_a_sink_that_claims_exactly_once_is_believed(tmp_path: Path) -> None:
    assert refusals(tmp_path, "exactly-once", "Careful") == []


def test_a_sink_class_that_is_not_there_is_a_problem_of_its_line(tmp_path: Path) -> None:
    (problem,) = refusals(tmp_path, "exactly-once", "Caerful")
    assert "topology.yaml:6: sink 'out'" in problem
    assert "Caerful" in problem


def test_every_built_in_sink_keeps_every_guarantee() -> None:
    assert {name: sink.keeps for name, sink in SINKS.items()} == dict.fromkeys(SINKS, EVERY_GUARANTEE)
