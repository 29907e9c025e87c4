"""Which keys and which code a custom operator with state may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.registry import catalogue
from penstock.topology.loading import load_topology
from penstock.validation import validate

CODE = '''
import pyarrow as pa
from penstock import Bolt

class Plain(Bolt):
    def process(self, tup): pass

class WithTimer(Plain):
    def on_timer(self, name): pass

class AcksItself(Bolt):
    auto_ack = False
    def process(self, tup): self.ack(tup)

def function(tup, context): return tup

def of_batches(batch: pa.RecordBatch): return batch
'''


def problems(folder: Path, operator: str, after: str = "", settings: str = "") -> list[str]:
    (folder / "own.py").write_text(CODE)
    file = folder / "topology.yaml"
    file.write_text(
        f"topology: t\n{settings}\n"
        "sources:\n  s: {rows: [], schema: 'id int, user string, price double, tags array<string>'}\n"
        f"operators:\n  o: {{from: s, emits: 'id int', {operator}}}\n{after}"
        "sinks:\n  out: {from: o, console: }\n"
    )
    topology, found = load_topology(file, catalogue())
    assert topology is not None
    return [str(problem) for problem in (*found, *validate(topology, catalogue()))]


@pytest.mark.parametrize(
    "operator",
    [
        "custom: 'own:Plain', key: user",
        "custom: 'own:WithTimer', key: [id, user]",
        "custom: 'own:function', key: USER, parallelism: 3",
        "custom: 'own:function', key: user, route: hash(user)",
        "custom: 'own:Plain'",
    ],
)
def test_what_is_right(tmp_path: Path, operator: str) -> None:
    assert problems(tmp_path, operator) == []


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("custom: 'own:Plain', key: usr", "no column 'usr'"),
        ("custom: 'own:Plain', key: [user, user]", "column 'user' is named twice"),
        ("custom: 'own:Plain', key: price", "column 'price' is double, which makes no key"),
        ("custom: 'own:Plain', key: tags", "column 'tags' is array<string>, which makes no key"),
        ("custom: 'own:Plain', key: user, route: all", "with the route all every instance"),
        ("custom: 'own:Plain', key: user, route: hash(id)", "hash(id) is impossible"),
        ("custom: 'own:WithTimer'", "timers belong to a key"),
        ("custom: 'own:of_batches', key: user", "a function of a batch has no key"),
    ],
)
def test_what_is_wrong(tmp_path: Path, operator: str, said: str) -> None:
    found = problems(tmp_path, operator)
    assert len(found) == 1
    assert said in found[0]


def test_a_bolt_that_acks_by_itself_has_no_key(tmp_path: Path) -> None:
    found = problems(tmp_path, "custom: 'own:AcksItself', key: user", settings="acking: true")
    assert len(found) == 1
    assert "acks its tuples itself, and has a key" in found[0]


def test_what_timers_emit_cannot_be_retried(tmp_path: Path) -> None:
    after = "  p: {from: o, custom: 'own:function', emits: 'id int', on_error: retry(2)}\n"
    (found,) = [said for said in problems(tmp_path, "custom: 'own:WithTimer', key: user", after) if "retry" in said]
    assert "what the timers of 'o' emit comes from no tuple" in found
