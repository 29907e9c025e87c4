"""Columns that go past custom code."""

from __future__ import annotations

from pathlib import Path

import pytest

from .written_topology import problems_of

CODE = """
import pyarrow as pa
from penstock import Bolt

def doubled(id): return id * 2
def of_batch(batch: pa.RecordBatch): return batch

class Plain(Bolt):
    def process(self, tup): self.emit(tup.id)

class AcksItself(Plain):
    auto_ack = False
"""


def problems(folder: Path, operator: str, select: str = "id, twice") -> list[str]:
    flow = (f"operators:\n  read: {{from: s, select: [cast(id as int) as id]}}\n  o: {{from: read, {operator}}}\n"
            f"  seen: {{from: o, select: [{select}]}}\nsinks:\n  out: {{from: seen, console: }}")
    return problems_of(folder, CODE, "exactly-once", flow)


@pytest.mark.parametrize("operator", [
    "custom: 'own:doubled', keep: id, emits: 'twice int'",
    "custom: 'own:doubled', keep: [ID], emits: 'twice int'",
    "custom: 'own:Plain', keep: [id], emits: 'twice int'",
])
def test_what_is_right(tmp_path: Path, operator: str) -> None:
    assert problems(tmp_path, operator) == []


@pytest.mark.parametrize(("operator", "said"), [
    ("custom: 'own:doubled', keep: idd, emits: 'twice int'", "no column 'idd'"),
    ("custom: 'own:doubled', keep: [id, Id], emits: 'twice int'", "the column 'id' is kept twice"),
    ("custom: 'own:doubled', keep: id, emits: 'ID int, twice int'", "the column 'id' is kept and emitted"),
    ("custom: 'own:of_batch', keep: id, emits: 'twice int'", "a function of a batch cannot `keep` columns"),
    ("custom: 'own:Plain', keep: id, key: id, emits: 'twice int'", "code with a key cannot `keep` columns"),
    ("custom: 'own:AcksItself', keep: id, emits: 'twice int'", "a class that acks by itself cannot `keep` columns"),
    ("custom: 'own:Plain', keep: id, emits: {a: 'x int', b: 'y int'}", "several output ports cannot `keep` columns"),
])
def test_what_is_wrong_is_told(tmp_path: Path, operator: str, said: str) -> None:
    assert any(said in problem for problem in problems(tmp_path, operator, "1 as one"))


def test_a_column_that_is_not_kept_is_gone(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "custom: 'own:doubled', emits: 'twice int'")
    assert "no column 'id'" in problem
