"""That Spark numbers state as `plan.state_ids` says: everything that finds state by an operator's name relies on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.registry import catalogue
from penstock.plan.state_ids import state_ids
from penstock.runtime.run import Run, RunSettings
from penstock.runtime.state_files import operator_ids, operator_metadata
from penstock.topology.loading import load_topology
from penstock.topology.model import Topology

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

FAN_OUT = """
    topology: fan-out
    sources:
      words: {file: words.txt}
    operators:
      first:  {from: words, uniq: value}
      number: {from: first, count: }
      counts: {from: words, count: value}
    sinks:
      counts: {from: counts, file: out/counts.jsonl}
      first:  {from: first, file: out/first.jsonl}
      number: {from: number, file: out/number.jsonl}
    """


def laid_out(project: Any, topology: Topology) -> list[tuple[str, str]]:
    """By Spark's number, our name for the operator and Spark's."""
    run = Run(topology, RunSettings(state=project.state, metrics=False))
    run.lay_out_state(project.spark, 2)
    checkpoint = run.state.checkpoint
    found = [operator_metadata(checkpoint, number)["operatorInfo"] for number in operator_ids(checkpoint)]
    assert [info["operatorId"] for info in found] == list(range(len(found)))
    return list(zip(state_ids(run.plan), (info["operatorName"] for info in found), strict=True))


def test_branches_are_numbered_from_the_sinks_upwards(project: Any) -> None:
    project.write("words.txt", "a\n")
    assert laid_out(project, project.topology(FAN_OUT)) == [
        ("counts", "stateStoreSave"), ("first", "dedupe"), ("number", "stateStoreSave"), ("first", "dedupe")]


def test_windows_that_wait_have_a_number_more(project: Any) -> None:
    topology = project.topology("""
        topology: early
        sources:
          clicks: {rows: [], schema: "user string, at timestamp"}
        operators:
          minutes: {from: clicks, window: tumbling(1m), on: at, by: user, compute: count() as n, emit: every 3 epochs}
        sinks:
          out: {from: minutes, file: out.jsonl}
        """)
    assert laid_out(project, topology) == [
        ("minutes.early", "transformWithStateInPySparkExec"), ("minutes", "stateStoreSave")]


@pytest.mark.parametrize(("example", "expected"), [
    ("fraud", [("alerts", "transformWithStateInPySparkExec")] * 2),
    ("orders-payments", [("matched", "symmetricHashJoin")] * 2),
    ("trending", [("trending", "stateStoreSave"), ("used", "stateStoreSave")]),
])
def test_windows_joins_and_keyed_state_have_one_number_each(
    project: Any, example: str, expected: list[tuple[str, str]]
) -> None:
    topology, problems = load_topology(EXAMPLES / example, catalogue())
    assert topology is not None, problems
    assert laid_out(project, topology) == expected
