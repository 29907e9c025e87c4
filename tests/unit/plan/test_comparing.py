from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.registry import catalogue
from penstock.plan.comparing import compared_steps
from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.topology.loading import load_topology

HEAD = """\
topology: t
sources:
  words: {rows: [], schema: "word string, n int"}
"""
OWN = 'custom: "own:code", emits: "word string, n int"'


def compared(folder: Path, rest: str) -> dict[str, str]:
    file = folder / "topology.yaml"
    file.write_text(HEAD + rest)
    topology, problems = load_topology(file, catalogue())
    assert topology is not None, problems
    return compared_steps(rewrite(build_plan(topology)))


def test_what_comes_first_is_named_first_wherever_it_is_written(tmp_path: Path) -> None:
    found = compared(tmp_path, f"""\
operators:
  late:    {{from: early, {OWN}}}
  early:   {{from: words, {OWN}}}
  counted: {{from: late, count: word}}
sinks:
  out: {{from: counted, file: out.jsonl}}
""")
    assert list(found.items()) == [("early", "early"), ("late", "late"), ("out", "counted")]


def test_what_only_a_sink_reads_is_compared_there(tmp_path: Path) -> None:
    found = compared(tmp_path, f"""\
operators:
  own: {{from: words, {OWN}}}
sinks:
  out: {{from: own, file: out.jsonl}}
""")
    assert found == {"out": "own"}


def test_what_two_read_is_compared_by_itself(tmp_path: Path) -> None:
    found = compared(tmp_path, f"""\
operators:
  own:  {{from: words, {OWN}}}
  some: {{from: own, filter: "n > 3"}}
sinks:
  all:  {{from: own, file: all.jsonl}}
  some: {{from: some, file: some.jsonl}}
""")
    assert list(found.values()) == ["own", "sink all", "sink some"]


def test_a_sink_is_named_where_nobody_knows_who_it_is(tmp_path: Path) -> None:
    found = compared(tmp_path, """\
operators:
  once:    {from: words, uniq: word}
  counted: {from: once, count: word}
  short:   {from: words, filter: "length(word) < 3"}
sinks:
  counts: {from: counted, file: counts.jsonl}
  short:  {from: short, file: short.jsonl}
""")
    assert list(found.values()) == ["sink counts", "source words"]


CHANCE = ["uuid()", "rand()", "rand(7)", "random()", "now()", "current_timestamp", "current_date()", "curdate()",
          "unix_timestamp()", "monotonically_increasing_id()", "concat(word, upper(uuid()))"]  # fmt: skip


@pytest.mark.parametrize("expression", CHANCE)
def test_sql_that_asks_for_the_clock_or_for_chance_is_compared_as_code_is(tmp_path: Path, expression: str) -> None:
    found = compared(tmp_path, f"""\
operators:
  tagged:  {{from: words, select: [word, "{expression} as tag"]}}
  counted: {{from: tagged, count: tag}}
sinks:
  out: {{from: counted, file: out.jsonl}}
""")
    assert list(found.values()) == ["tagged", "counted"]


@pytest.mark.parametrize("expression", ["word", "uuid_of", "'now()'", "unix_timestamp(word)", "brand(n)"])
def test_sql_that_gives_the_same_is_not_compared(tmp_path: Path, expression: str) -> None:
    found = compared(tmp_path, f"""\
operators:
  tagged: {{from: words, select: ["{expression} as tag"]}}
sinks:
  out: {{from: tagged, file: out.jsonl}}
""")
    assert found == {"out": "source words"}


@pytest.mark.parametrize("operator", [
    'filter: "rand() < 0.5"',
    "explode: \"array(uuid())\", as: tag",
    'window: tumbling(3 tuples), compute: "max(rand()) as most"',
])  # fmt: skip
def test_chance_is_found_wherever_there_is_sql(tmp_path: Path, operator: str) -> None:
    found = compared(tmp_path, f"""\
operators:
  chance: {{from: words, {operator}}}
sinks:
  out: {{from: chance, file: out.jsonl}}
""")
    assert found == {"out": "chance"}
