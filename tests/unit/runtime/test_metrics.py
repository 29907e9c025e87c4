from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.connectors.registry import catalogue
from penstock.epochs.record import EpochRecord
from penstock.plan.graph import Plan, build_plan
from penstock.plan.rewrites import rewrite
from penstock.runtime.metrics import OperatorCounts
from penstock.runtime.progress import Progress
from penstock.runtime.tally import Line, tally
from penstock.topology.yaml_reader import read_topology_text

PORTS = ("words", "short")


def word_count() -> Plan:
    """A bolt with two ports, and nothing behind either that would tell how many tuples left it."""
    text = {
        "topology": "t",
        "sources": {"lines": {"generator": {"sentence": "text"}, "count": 10}},
        "operators": {
            "split": {"from": "lines", "custom": "own:Split", "emits": dict.fromkeys(PORTS, "word string")},
            "counts": {"from": "split.words", "count": "word"},
            "skipped": {"from": "split.short", "count": None},
        },
        "sinks": {"words": {"from": "counts", "console": None}, "ignored": {"from": "skipped", "console": None}},
    }
    topology, problems = read_topology_text(json.dumps(text), "t.yaml", Path(), catalogue(), {})
    assert topology is not None, problems
    return rewrite(build_plan(topology))


def batch(number: int, **observed: dict[str, int]) -> dict[str, Any]:
    metrics = {name.replace("_", "|"): row for name, row in observed.items()}
    return {"batchId": number, "observedMetrics": metrics, "stateOperators": []}


def test_what_was_observed_of_the_ports_is_added_up_by_port_and_for_the_operator() -> None:
    plan, progress = word_count(), Progress()
    counts = OperatorCounts(plan, progress)
    for number in (0, 1):
        counts.take(batch(number, split_ports={"words": 5, "short": 2}, split_barrier={"sample": 0}))
    snapshot = progress.snapshot()
    assert snapshot.tuples == {"split": 14}
    assert snapshot.ports == {"split": {"words": 10, "short": 4}}
    # Whoever looks has a picture of that moment.
    counts.take(batch(2, split_ports={"words": 5, "short": 2}))
    assert snapshot.ports == {"split": {"words": 10, "short": 4}}


def test_ports_are_told_with_their_operator_and_are_none_themselves() -> None:
    plan, progress = word_count(), Progress()
    OperatorCounts(plan, progress).take(batch(0, split_ports={"words": 5, "short": 2}))
    progress.epoch_committed(EpochRecord(1, 0, {}, {}), 10.0, {"words": 3, "ignored": 1}, {})
    lines = tally(plan, progress.snapshot())
    assert [line.name for line in lines] == ["lines", "split", "counts", "skipped", "words", "ignored"]
    assert lines[1] == Line("custom", "split", 7, ports={"words": 5, "short": 2})
    assert [line.ports for line in lines if line.name != "split"] == [{}] * 5
