"""Two replicas of one topology, of which one is killed and the other frozen."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

from penstock.replication.replica import opened_roster

from .readings import Project

TUPLES = 2000
TOPOLOGY = f"""\
topology: readings
replicas: 2
cells: any
epoch: {{interval: 200ms, max_tuples: 10}}
sources:
  ticks: {{generator: {{id: sequence, key: "choice(a, b, c)"}}, count: {TUPLES}}}
operators:
  counted: {{from: ticks, count: key}}
sinks:
  all:    {{from: ticks, file: out/all.jsonl}}
  counts: {{from: counted, file: out/counts.jsonl}}
"""


def process_of(project: Project, replica: str) -> int:
    with opened_roster(f"sqlite:{project.state / 'coordinator.sqlite'}") as roster:
        return roster.members()[replica].process


def epoch_of(project: Project, replica: str) -> int:
    with opened_roster(f"sqlite:{project.state / 'coordinator.sqlite'}") as roster:
        told, member = roster.told().get(replica), roster.members().get(replica)
        return told.epoch if told is not None and member is not None and told.run == member.run else 0


def test_a_replica_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    project = Project.new(tmp_path, TOPOLOGY)
    with project.running() as run:
        run.until(lambda: (project.state / "coordinator.sqlite").exists() and epoch_of(project, "1") > 3)
        run.until(lambda: epoch_of(project, "2") > 3)
        killed = process_of(project, "1")
        os.killpg(killed, signal.SIGKILL)
        reached = epoch_of(project, "2")
        # The other one goes on meanwhile.
        run.until(lambda: epoch_of(project, "2") > reached + 3)
        run.until(lambda: epoch_of(project, "1") > reached)
        assert process_of(project, "1") != killed
        # Now the one that has delivered all along is frozen.
        os.killpg(process_of(project, "2"), signal.SIGSTOP)
        assert run.finish() == 0, run.errors
        told = [event for event in run.events() if event["event"] == "replicas"]
    ids = Counter(json.loads(line)["id"] for line in project.output()["all"])
    assert len(ids) == TUPLES
    assert set(ids.values()) == {1}
    counts = [json.loads(line) for line in project.output()["counts"]]
    assert sum(max(row["count"] for row in counts if row["key"] == key) for key in "abc") == TUPLES
    assert len({(row["key"], row["count"]) for row in counts}) == len(counts)
    assert ["safe", "safe"] in [[view["phase"] for view in event["replicas"]] for event in told]
