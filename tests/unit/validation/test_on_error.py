"""Where a tuple can be replayed, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .written_topology import problems_of

OWN = """
import pyarrow as pa

def each(tup): return tup
def whole(batch: pa.RecordBatch): return batch
"""


def refusals(folder: Path, operators: str, last: str = "tried", delivery: str = "exactly-once") -> list[str]:
    flow = f"operators:\n{operators}\nsinks:\n  out: {{from: {last}, console: }}"
    return problems_of(folder, OWN, delivery, flow)


def tried(stream: str, on_error: str = "retry(3)", code: str = "each", emits: str = "id bigint") -> str:
    return f'  tried: {{from: {stream}, custom: "own:{code}", emits: "{emits}", on_error: {on_error}}}'


@pytest.mark.parametrize("before", [
    '  a: {from: s, filter: "id > 1"}',
    "  a: {from: s, uniq: id}",
    '  a: {from: s, custom: "own:each", emits: "id bigint"}',
    '  a: {from: s, select: "array(id) as ids"}\n  b: {from: a, explode: ids, as: id}',
])
def test_retry_is_possible_wherever_a_tuple_comes_from_one_source_tuple(tmp_path: Path, before: str) -> None:
    last = before.splitlines()[-1].strip().partition(":")[0]
    emits = "id bigint" if last == "a" else "id bigint, ids array<bigint>"
    assert refusals(tmp_path, f"{before}\n{tried(last, emits=emits)}") == []


def test_a_function_of_a_batch_may_be_retried_itself(tmp_path: Path) -> None:
    assert refusals(tmp_path, tried("s", code="whole")) == []


def test_a_count_after_it_is_no_obstacle(tmp_path: Path) -> None:
    assert refusals(tmp_path, f"{tried('s')}\n  c: {{from: tried, count: }}", last="c") == []


def test_after_a_count_there_is_no_one_tuple_to_replay(tmp_path: Path) -> None:
    operators = f"  c: {{from: s, count: id}}\n  d: {{from: c, select: id}}\n{tried('d')}"
    (problem,) = refusals(tmp_path, operators)
    assert "topology.yaml:8: operator 'tried': on_error: retry(3) is impossible" in problem
    assert "what 'c' counts comes from many tuples" in problem
    assert "use on_error: dead-letter or drop there" in problem


def test_after_a_function_of_a_batch_there_is_no_one_tuple_to_replay(tmp_path: Path) -> None:
    operators = f'  b: {{from: s, custom: "own:whole", emits: "id bigint"}}\n{tried("b")}'
    (problem,) = refusals(tmp_path, operators)
    assert "'b' is a function of a batch" in problem


@pytest.mark.parametrize("on_error", ["drop", "dead-letter"])
def test_to_drop_or_bury_is_possible_everywhere(tmp_path: Path, on_error: str) -> None:
    operators = f"  c: {{from: s, count: id}}\n{tried('c', on_error, emits='id bigint, count bigint')}"
    assert refusals(tmp_path, operators, delivery="at-most-once") == []


def test_at_most_once_never_replays(tmp_path: Path) -> None:
    (problem,) = refusals(tmp_path, tried("s"), delivery="at-most-once")
    assert "delivery: at-most-once never reads a tuple twice" in problem
    assert "on_error: dead-letter or drop" in problem
