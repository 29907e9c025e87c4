"""Replicas one after the other in one Spark: they run the same epochs, the sinks take each once, and they compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.registry import catalogue
from penstock.coordination.opening import open_coordinator
from penstock.errors import CoordinationError, DeliveryError
from penstock.replication.divergence import Divergence
from penstock.replication.replica import Replica, ReplicaPlace, opened_roster
from penstock.replication.sibling import begin_from_sibling, go_on_without_replicas
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run, RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.topology.loading import load_topology
from penstock.topology.model import EpochSettings, Topology
from penstock.validation import validate

CODE = """\
import random
import time
import uuid

def doubled(row):
    return [(row.n * 2,)]

def by_chance(row):
    return [(row.n, uuid.uuid4().hex)]

def only_even(row):
    if row.n % 2:
        raise ValueError(f"{row.n} is odd")
    return [(row.n,)]


def fraction(row):
    return [(row.n, random.random())]

def clock(row):
    return [(row.n, time.time())]

def map_of(row):
    return [(row.n, {"a": 1, "b": random.getrandbits(60)})]

def nested(row):
    return [(row.n, [{"x": random.random()}])]

def tenths(row):
    return [(row.n, row.n / 10)]
"""

TOPOLOGY = """\
topology: pair
replicas: 2
cells: any
epoch: {max_tuples: 4}
dead_letters: out/dead.jsonl
sources:
  numbers: {rows: [{n: 1}, {n: 2}, {n: 3}, {n: 4}, {n: 5}, {n: 6}], schema: "n int"}
operators:
  doubled: {from: numbers, custom: "pair_code:doubled", emits: "n int"}
  chance:  {from: numbers, custom: "pair_code:CODE", emits: "EMITS", on_error: dead-letter}
sinks:
  doubled: {from: doubled, file: out/doubled.jsonl}
  chance:  {from: chance, file: out/chance.jsonl}
"""


def written(folder: Path, function: str, emits: str) -> Topology:
    return loaded(folder, TOPOLOGY.replace("CODE", function).replace("EMITS", emits))


def loaded(folder: Path, text: str) -> Topology:
    (folder / "pair_code.py").write_text(CODE)
    file = folder / "topology.yaml"
    file.write_text(text)
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


@pytest.mark.parametrize(("function", "emits"), [
    ("by_chance", "n int, by string"),
    ("fraction", "n int, by double"),
    ("clock", "n int, by double"),
    ("map_of", "n int, by map<string, bigint>"),
    ("nested", "n int, by array<struct<x: double>>"),
])  # fmt: skip
def test_code_that_is_not_deterministic_is_found_and_named(
    tmp_path: Path, spark: SparkSession, function: str, emits: str
) -> None:
    _, divergence = run_both(written(tmp_path, function, emits), spark)
    assert divergence == Divergence(1, "chance", ("1", "2"))


def test_each_dead_letter_is_buried_once_and_what_a_sibling_is_writing_is_left_alone(
    tmp_path: Path, spark: SparkSession
) -> None:
    topology = written(tmp_path, "only_even", "n int")
    place, dead = ReplicaPlace(StateFolder.of(topology)), tmp_path / "out/dead.jsonl"
    for name, unfinished in (("1", b""), ("2", b"the beginning of what a sibling writes")):
        if unfinished:
            with dead.open("ab") as file:
                file.write(unfinished)
        replica = Replica(topology, name, place, RunSettings())
        replica.start(spark=spark)
        assert replica.wait().ended
    letters = dead.read_bytes().split(b"\n")
    assert [json.loads(letter)["tuple"]["n"] for letter in letters[:-1]] == [1, 3, 5]
    assert letters[-1] == b"the beginning of what a sibling writes"


IN_SQL = """\
topology: pair
replicas: 2
cells: any
sources:
  numbers: {rows: [{n: 1}, {n: 2}], schema: "n int"}
operators:
  late:   {from: tagged, custom: "pair_code:by_chance", emits: "n int, by string"}
  tagged: {from: numbers, select: [n, "uuid() as tag"]}
  latest: {from: late, uniq: n}
sinks:
  out: {from: latest, file: out/out.jsonl}
"""


def test_sql_that_is_not_deterministic_is_named_before_the_code_that_follows_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    _, divergence = run_both(loaded(tmp_path, IN_SQL), spark)
    assert divergence == Divergence(1, "tagged", ("1", "2"))


SUMMED = """\
topology: pair
replicas: 2
cells: any
epoch: {max_tuples: 4}
sources:
  numbers: {rows: [{n: 1}, {n: 2}, {n: 3}, {n: 4}, {n: 5}, {n: 6}], schema: "n int"}
operators:
  tenths: {from: numbers, custom: "pair_code:tenths", emits: "n int, x double"}
  summed: {from: tenths, window: tumbling(2 tuples), compute: ["sum(x) as total", "max(x) as most"]}
  halved: {from: summed, select: ["total / 2 as half", most]}
sinks:
  out: {from: halved, file: out/out.jsonl}
"""


def test_sums_of_fractions_are_compared_too(tmp_path: Path, spark: SparkSession) -> None:
    topology = loaded(tmp_path, SUMMED)
    assert run_both(topology, spark)[1] is None
    coordinator = open_coordinator(ReplicaPlace(StateFolder.of(topology)).coordinator(topology, None))
    try:
        found = [json.loads(text)["out"] for text in coordinator.entries("digests/").values()]
    finally:
        coordinator.close()
    # Two windows in the first epoch, one in the second, of both replicas; the halves are added up, and `most` is not.
    assert [digest.partition(":")[0] for digest in found] == ["2", "2", "1", "1"]
    assert [len(digest.split()) for digest in found] == [2, 2, 2, 2]
    sizes = [float(digest.rpartition("/")[2]) for digest in found]
    assert sizes == pytest.approx([0.5, 0.5, 0.55, 0.55])


def test_replicas_that_differ_end_where_that_is_wanted_though_nobody_watches(
    tmp_path: Path, spark: SparkSession
) -> None:
    topology = replace(written(tmp_path, "fraction", "n int, by double"), on_divergence="stop")
    with pytest.raises(DeliveryError, match="replicas 1 and 2 differ in epoch 1, first in 'chance'"):
        run_both(topology, spark)


def stop_after(run: Run, epoch: int) -> Callable[[Snapshot], None]:
    return lambda snapshot: run.stop() if snapshot.epoch >= epoch else None


def test_a_run_without_replicas_goes_on_from_theirs_and_they_from_it(tmp_path: Path, spark: SparkSession) -> None:
    topology = replace(written(tmp_path, "doubled", "n int"), epoch=EpochSettings(max_tuples=1))
    home = StateFolder.of(topology)

    first = Replica(topology, "1", ReplicaPlace(home), RunSettings())
    first.start(spark=spark)
    assert not first.wait(stop_after(first.run, 2)).ended
    reached = home.furthest().committed().epoch
    assert 2 <= reached < 6
    with home.replica("1").held(), pytest.raises(CoordinationError, match="replica 1 of 'pair' is running"):
        go_on_without_replicas(home, topology.name, home.coordinator)
    assert go_on_without_replicas(home, topology.name, home.coordinator) == reached
    assert (home.committed().epoch, home.replicas()) == (reached, {})
    alone = Run(topology)
    alone.start(spark)
    assert alone.resumed_from == reached
    alone.wait(stop_after(alone, reached + 1))
    second = Replica(topology, "2", ReplicaPlace(home), RunSettings())
    second.start(spark=spark)
    assert second.wait().ended
    lines = (tmp_path / "out/doubled.jsonl").read_text().splitlines()
    assert sorted(lines) == sorted(f'{{"n":{n * 2}}}' for n in range(1, 7))


COUNTED = """\
topology: counted
replicas: 2
cells: any
epoch: {max_tuples: 1}
sources:
  numbers: {file: numbers.csv, schema: "n int"}
operators:
  even:    {from: numbers, filter: "n % 2 = 0"}
  counted: {from: even, count: }
sinks:
  out: {from: counted, file: out/counted.jsonl}
"""


def test_one_that_is_behind_goes_on_from_a_siblings_checkpoint_while_it_runs(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "topology.yaml").write_text(COUNTED)
    (tmp_path / "numbers.csv").write_text("".join(f"{n}\n" for n in range(40)))
    topology, problems = load_topology(tmp_path / "topology.yaml", catalogue())
    assert topology is not None, problems
    home = StateFolder.of(topology)

    def replica(name: str) -> Run:
        run = Run(topology, RunSettings(replica=name, state=home.replica(name).path, coordinator=home.coordinator))
        run.start(spark)
        return run

    behind = replica("2")
    behind.wait(stop_after(behind, 1))
    ahead = replica("1")
    ahead.wait(stop_after(ahead, 30))
    behind = replica("2")
    taken: list[int | None] = []

    def put_in_place() -> None:
        taken.append(begin_from_sibling(behind.state, [ahead.state], topology.name, home.coordinator))

    assert behind.wait(lambda _: None if taken else behind.go_on_from(put_in_place)).ended
    assert len(taken) == 1
    assert taken[0] is not None
    assert taken[0] >= 30
    counts = [json.loads(line)["count"] for line in (tmp_path / "out/counted.jsonl").read_text().splitlines()]
    assert counts == list(range(1, 21))
