"""`penstock rescale` and `penstock state` on what a stopped run has left; the shared session is their Spark."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import PenstockError
from penstock.runtime.run import Run, run_topology

EPOCHS = 12
ROWS_IN_EPOCH = 5
SENSORS = ("kitchen", "cellar", "roof")

TOPOLOGY = """
    topology: readings
    epoch: {max_tuples: 5}
    sources:
      readings: {file: readings.csv, schema: "n int, sensor string"}
    operators:
      odd:    {from: readings, filter: "n % 2 = 1"}
      counts: {from: odd, count: sensor}
    sinks:
      counts: {from: counts, file: out/counts.jsonl}
    """


def counts_after(epoch: int) -> Counter[str]:
    """What `counts` remembers: how many odd readings each sensor has given."""
    return Counter(SENSORS[n % 3] for n in range(epoch * ROWS_IN_EPOCH) if n % 2)


def stopped(project: Any, epochs: int) -> int:
    """Run until so many epochs are committed, and stop; the last of them."""
    run: Run = project.started(project.topology(TOPOLOGY))
    return run.wait(lambda snapshot: run.stop() if snapshot.epoch >= epochs else None).progress.epoch


def penstock(project: Any, command: str, *arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "160"}).invoke(
        app, [command, str(project.folder), *arguments, "--state", str(project.state)])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_state_is_divided_anew_shown_and_goes_on(project: Any) -> None:
    project.write("readings.csv", "".join(f"{n},{SENSORS[n % 3]}\n" for n in range(EPOCHS * ROWS_IN_EPOCH)))
    at = stopped(project, 2)
    assert "'counts' is divided over 5 instances instead of 2" in penstock(project, "rescale", "counts=5")
    one = json.loads(penstock(project, "state", "counts", "--key", "sensor=roof", "--json"))
    assert one["count"] == counts_after(at)["roof"]

    at = stopped(project, at + 1)
    assert at < EPOCHS
    assert "'counts' is divided over 3 instances instead of 5" in penstock(project, "rescale", "counts=3")
    found = [json.loads(line) for line in penstock(project, "state", "counts", "--json").splitlines()]
    assert {row["sensor"]: row["count"] for row in found} == counts_after(at)
    assert all(row["instance"] < 3 for row in found)
    target = project.folder / "counts.parquet"
    said = penstock(project, "state", "counts", "--export", str(target))
    assert f"{len(SENSORS)} keys of 'counts' after epoch {at} are in {target}" in said
    assert {row["sensor"]: row["count"] for row in pq.read_table(target).to_pylist()} == counts_after(at)
    assert f"state of readings after epoch {at}" in penstock(project, "state")

    assert project.run(project.topology(TOPOLOGY)).ended
    rows = sorted((row["sensor"], row["count"]) for row in project.json_lines("out/counts.jsonl"))
    assert dict(rows) == counts_after(EPOCHS)
    assert len(rows) == len(set(rows)), "no epoch was counted twice"


def test_the_same_from_python(project: Any) -> None:
    project.write("readings.csv", "".join(f"{n},{SENSORS[n % 3]}\n" for n in range(EPOCHS * ROWS_IN_EPOCH)))
    topology = project.topology(TOPOLOGY)
    run = Run(topology)
    run.start(project.spark)
    at = run.wait(lambda snapshot: run.stop() if snapshot.epoch >= 2 else None).progress.epoch
    assert topology.checkpoint("early").epoch == at
    assert topology.backup(project.folder / "kept", "early").epoch == at
    assert topology.rescale("counts", 3).after == 3
    found = topology.state("counts")
    assert {row["sensor"]: row["count"] for row in found} == counts_after(at)
    with pytest.raises(PenstockError, match=r"has the state of epoch|replace"):
        topology.restore(project.folder / "kept")
    assert run_topology(topology, spark=project.spark).ended
    topology.restore(project.folder / "kept", parallelism=4, replace=True)
    found = topology.state("counts")
    assert {row["sensor"]: row["count"] for row in found} == counts_after(at)
    assert max(row["instance"] for row in found) < 4
