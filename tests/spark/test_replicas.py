"""Replicas one after the other in one Spark: they run the same epochs, the sinks take each once, and they compare."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.connectors.registry import catalogue
from penstock.replication.divergence import Divergence
from penstock.replication.replica import Replica, ReplicaPlace, opened_roster
from penstock.runtime.run import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.topology.loading import load_topology
from penstock.topology.model import Topology
from penstock.validation import validate

CODE = """\
import uuid

def doubled(row):
    return [(row.n * 2,)]

def by_chance(row):
    return [(row.n, uuid.uuid4().hex)]
"""

TOPOLOGY = """\
topology: pair
replicas: 2
cells: any
epoch: {max_tuples: 4}
sources:
  numbers: {rows: [{n: 1}, {n: 2}, {n: 3}, {n: 4}, {n: 5}, {n: 6}], schema: "n int"}
operators:
  doubled: {from: numbers, custom: "pair_code:doubled", emits: "n int"}
  chance:  {from: numbers, custom: "pair_code:CODE", emits: "EMITS"}
sinks:
  doubled: {from: doubled, file: out/doubled.jsonl}
  chance:  {from: chance, file: out/chance.jsonl}
"""


def written(folder: Path, function: str, emits: str) -> Topology:
    (folder / "pair_code.py").write_text(CODE)
    file = folder / "topology.yaml"
    file.write_text(TOPOLOGY.replace("CODE", function).replace("EMITS", emits))
    topology, problems = load_topology(file, catalogue())
    assert topology is not None, problems
    assert [str(problem) for problem in validate(topology, catalogue())] == []
    return topology


def run_both(topology: Topology, spark: SparkSession) -> tuple[list[int], Divergence | None]:
    """How many epochs each replica was the first to deliver, and where they differ."""
    place = ReplicaPlace(StateFolder.of(topology))
    firsts = []
    for name in ("1", "2"):
        replica = Replica(topology, name, place, RunSettings())
        replica.start(spark=spark)
        assert replica.wait().ended
        firsts.append(replica.run.first)
    with opened_roster(place.coordinator(topology, None)) as roster:
        return firsts, roster.divergence()


def test_replicas_run_the_same_epochs_and_each_is_delivered_once(tmp_path: Path, spark: SparkSession) -> None:
    topology = written(tmp_path, "doubled", "n int")
    firsts, divergence = run_both(topology, spark)
    assert firsts == [2, 0]
    assert divergence is None
    lines = (tmp_path / "out/doubled.jsonl").read_text().splitlines()
    assert sorted(lines) == sorted(f'{{"n":{n * 2}}}' for n in range(1, 7))


def test_code_that_is_not_deterministic_is_found_and_named(tmp_path: Path, spark: SparkSession) -> None:
    _, divergence = run_both(written(tmp_path, "by_chance", "n int, by string"), spark)
    assert divergence == Divergence(1, "chance", ("1", "2"))
