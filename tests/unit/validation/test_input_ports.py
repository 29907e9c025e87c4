from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.registry import catalogue
from penstock.topology.loading import load_topology
from penstock.validation import validate

CODE = """
import pyarrow as pa
from penstock import Bolt

class Match(Bolt):
    def process(self, tup): ...

class Pairs(Bolt):
    def process_epoch(self, left, right): ...

class Misnamed(Bolt):
    def process_epoch(self, left, rigth): ...

class Anything(Bolt):
    def process_epoch(self, **ports): ...

class Acks(Bolt):
    auto_ack = False
    def process(self, tup): self.ack(tup)

def of_batch(batch: pa.RecordBatch) -> pa.RecordBatch: ...

def of_tuple(tup): ...
"""


def problems(folder: Path, operator: str) -> list[str]:
    (folder / "own.py").write_text(CODE)
    file = folder / "t.yaml"
    file.write_text(
        "topology: t\nacking: true\nsources:\n"
        '  a: {rows: [], schema: "id int, user string"}\n'
        '  b: {rows: [], schema: "id bigint, user string, note string"}\n'
        f'operators:\n  o: {{from: {{left: a, right: b}}, emits: "id int", {operator}}}\n'
        "sinks:\n  out: {from: o, console: }\n"
    )
    topology, found = load_topology(file, catalogue())
    assert topology is not None
    return [problem.message for problem in (*found, *validate(topology, catalogue())) if problem.severity == "error"]


@pytest.mark.parametrize("operator", [
    "custom: own:Match",
    "custom: own:of_tuple",
    "custom: own:Match, route: hash(user), parallelism: 2",
    "custom: own:Pairs, access: synchronous",
    "custom: own:Anything, access: synchronous, route: hash(user), parallelism: 3",
    "custom: own:Pairs, access: synchronous, parallelism: 1",
])
def test_ports_may_have_different_columns(tmp_path: Path, operator: str) -> None:
    assert problems(tmp_path, operator) == []


@pytest.mark.parametrize(("operator", "said"), [
    ("custom: own:of_batch", "'own:of_batch' is a function of a batch, and a batch is of one port"),
    ("custom: own:Acks", "acks its tuples itself, and has several input ports"),
    ("custom: own:Match, access: synchronous", "class 'Match' has no process_epoch(self, left, right)"),
    ("custom: own:of_tuple, access: synchronous", "needs a class with process_epoch"),
    ("custom: own:Pairs, access: synchronous, route: shuffle", "tuples of all ports must meet"),
    ("custom: own:Pairs, access: synchronous, parallelism: 2", "need to know which tuples belong together"),
    ("custom: own:Pairs, access: synchronous, on_error: drop", "on_error: drop speaks of single tuples"),
    ("custom: own:Match, route: hash(note), parallelism: 2", "port 'left' has no column 'note'"),
    ("custom: own:Match, route: hash(id), parallelism: 2", "'id' is int on port 'left' and bigint on port 'right'"),
])
def test_what_does_not_go_with_ports_is_told(tmp_path: Path, operator: str, said: str) -> None:
    [problem] = problems(tmp_path, operator)
    assert said in problem


def test_the_arguments_of_process_epoch_are_the_ports(tmp_path: Path) -> None:
    first, second = problems(tmp_path, "custom: own:Misnamed, access: synchronous")
    assert "'Misnamed.process_epoch' has no argument for the port 'right': did you mean 'rigth'?" in first
    assert "'Misnamed.process_epoch' needs 'rigth', and there is no such port" in second
