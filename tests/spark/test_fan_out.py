"""A stream with several readers is computed once, whatever reads it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock import Topology
from penstock.runtime.run import Run
from penstock.testing import run_on

ROWS = [[number, f"user {number % 3}"] for number in range(60)]

WATCHED = '''
import os
from pathlib import Path

from penstock import Bolt, Spout

SEEN = Path(__file__).with_name("seen")

def note(what):
    file = os.open(SEEN, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what}\\n".encode())
    os.close(file)

def watch(tup):
    note(tup.id)
    return tup

class Sort(Bolt):
    def process(self, tup):
        note(tup.id)
        self.emit(tup.id, tup.user, port="even" if tup.id % 2 == 0 else "odd")
'''

SCHEMA = "id int, user string"


def watched(project: Any, operators: str, sinks: str, rows: str = "[]") -> Topology:
    project.write("watched.py", WATCHED)
    return project.topology(f"""
        topology: fan-out
        sources:
          numbers: {{rows: {rows}, schema: "{SCHEMA}"}}
        operators:{operators}
        sinks:{sinks}
        """)


def seen(project: Any) -> Counter[str]:
    return Counter((project.folder / "seen").read_text().split())


ONCE = Counter(str(number) for number in range(60))


def test_two_branches_compute_what_is_before_them_once(project: Any) -> None:
    topology = watched(project, f"""
          watched: {{from: numbers, custom: "watched:watch", emits: "{SCHEMA}"}}
          few: {{from: watched, filter: "id < 5"}}
          users: {{from: watched, count: user}}""", """
          few: {from: few, memory: true}
          users: {from: users, memory: true}""")
    result = run_on(topology, numbers=ROWS)
    assert seen(project) == ONCE
    assert len(result["few"]) == 5
    assert result.same("users", [{"user": f"user {number}", "count": 20} for number in range(3)])


def test_three_readers_of_different_kinds_compute_it_once(project: Any) -> None:
    topology = watched(project, f"""
          watched: {{from: numbers, custom: "watched:watch", emits: "{SCHEMA}"}}
          few: {{from: watched, select: [id]}}
          users: {{from: watched, uniq: user}}
          total: {{from: watched, count: }}""", """
          few: {from: few, memory: true}
          users: {from: users, memory: true}
          total: {from: total, memory: true}
          all: {from: watched, memory: true}""")
    result = run_on(topology, numbers=ROWS)
    assert seen(project) == ONCE
    assert [len(result[sink]) for sink in ("few", "users", "all")] == [60, 3, 60]
    assert result["total"] == [{"count": 60}]


def test_the_ports_of_a_bolt_are_computed_together(project: Any) -> None:
    topology = watched(project, f"""
          sorted:
            {{from: numbers, custom: "watched:Sort", emits: {{even: "{SCHEMA}", odd: "{SCHEMA}"}}}}
          evens: {{from: sorted.even, filter: "id >= 10"}}
          odds: {{from: sorted.odd, count: user}}""", """
          evens: {from: evens, memory: true}
          again: {from: sorted.even, memory: true}
          odds: {from: odds, memory: true}""")
    result = run_on(topology, numbers=ROWS)
    assert seen(project) == ONCE
    assert sorted(row["id"] for row in result["evens"]) == list(range(10, 60, 2))
    assert len(result["again"]) == 30
    assert sum(row["count"] for row in result["odds"]) == 30


def test_a_fan_out_below_a_fan_out_computes_each_level_once(project: Any) -> None:
    topology = watched(project, f"""
          watched: {{from: numbers, custom: "watched:watch", emits: "{SCHEMA}"}}
          half: {{from: watched, filter: "id < 30"}}
          few: {{from: half, filter: "id < 5"}}
          users: {{from: half, count: user}}""", """
          all: {from: watched, memory: true}
          few: {from: few, memory: true}
          users: {from: users, memory: true}""")
    result = run_on(topology, numbers=ROWS)
    assert seen(project) == ONCE
    assert (len(result["all"]), len(result["few"]), sum(row["count"] for row in result["users"])) == (60, 5, 30)


def test_a_source_with_two_readers_is_read_once(project: Any) -> None:
    project.write("watched.py", WATCHED + '''
class Numbers(Spout):
    def emit_from(self, offset, limit):
        for number in range(offset, min(offset + limit, 60)):
            note(number)
            yield number, f"user {number % 3}"

    def ended(self, offset):
        return offset >= 60
''')
    one_reader = '''
        topology: fan-out
        sources: {numbers: {spout: "watched:Numbers", schema: "id int, user string"}}
        operators:
          few: {from: numbers, filter: "id < 5"}
          users: {from: numbers, count: user}
        sinks:
          few: {from: few, file: out/few.jsonl}
        '''
    project.run(project.topology(one_reader))
    alone = seen(project)
    (project.folder / "seen").unlink()
    project.run(project.topology(one_reader + "  users: {from: users, file: out/users.jsonl}\n"))
    assert seen(project) == alone
    assert len(project.json_lines("out/few.jsonl")) == 5
    assert len(project.json_lines("out/users.jsonl")) == 3


def test_the_running_plan_reuses_the_exchange_before_the_branches(project: Any) -> None:
    rows = [{"id": number, "user": user} for number, user in ROWS]
    topology = watched(project, f"""
          watched: {{from: numbers, custom: "watched:watch", emits: "{SCHEMA}"}}
          few: {{from: watched, filter: "id < 5"}}
          users: {{from: watched, count: user}}""", """
          few: {from: few, memory: true}
          users: {from: users, memory: true}""", rows=str(rows))
    run: Run = project.started(topology)
    run.wait()
    plan = str(run._query._jsq.explainInternal(False))
    assert plan.count("ReusedExchange") == 1
    assert plan.count("MapInArrow") == 2


def test_branches_stay_right_over_many_epochs(project: Any) -> None:
    topology = watched(project, f"""
          watched: {{from: numbers, custom: "watched:watch", emits: "{SCHEMA}"}}
          few: {{from: watched, filter: "id < 5"}}
          users: {{from: watched, count: user}}""", """
          few: {from: few, memory: true}
          users: {from: users, memory: true}
        epoch: {max_tuples: 25}""")
    result = run_on(topology, numbers=ROWS)
    assert seen(project) == ONCE
    assert len(result["few"]) == 5
    assert Counter(row["count"] for row in result["users"])[20] == 3
