"""Each port of an operator is counted, whatever reads it, and in the same pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import run_topology
from penstock.runtime.tally import tally
from penstock.topology.model import Topology

OWN = """
    from penstock import Bolt

    class Sort(Bolt):
        def process(self, tup):
            self.emit(tup.n, port="even" if tup.n % 2 == 0 else "odd")
            if tup.n % 10 == 0:
                self.emit(tup.n, port="round")

    class Evens(Bolt):
        def process(self, tup):
            if tup.n % 2 == 0:
                self.emit(tup.n, port="even")

    class Acks(Bolt):
        auto_ack = False

        def process(self, tup):
            self.emit(tup.n, port="even" if tup.n % 2 == 0 else "odd")
            if tup.n != 7:
                self.ack(tup)
    """


def sorting(project: Any, code: str, ports: str, head: str = "") -> Topology:
    project.write("own.py", OWN)
    rows = ", ".join(f"[{number}]" for number in range(100))
    topology: Topology = project.topology(f"""
        topology: sorting
        epoch: {{max_tuples: 40}}
        {head}
        sources:
          numbers: {{rows: [{rows}], schema: "n bigint"}}
        operators:
          sort: {{from: numbers, custom: "own:{code}", emits: {{{ports}}}, on_error: drop}}
          evens: {{from: sort.even, count: }}
          odds: {{from: sort.odd, count: n}}
        sinks:
          evens: {{from: evens, memory: true}}
          odds: {{from: odds, memory: true}}
        """)
    return topology


def counted(project: Any, topology: Topology) -> Snapshot:
    return run_topology(topology, replace(project.settings(), metrics=True), project.spark).progress


def test_a_run_tells_how_many_tuples_left_each_port(project: Any) -> None:
    topology = sorting(project, "Sort", "even: n bigint, odd: n bigint, round: n bigint")
    progress = counted(project, topology)
    assert progress.epoch == 3
    lines = {line.name: line for line in tally(rewrite(build_plan(topology)), progress) if line.role != "sink"}
    # Also of a port that nobody reads: else the numbers would not add up.
    assert lines["sort"].ports == {"even": 50, "odd": 50, "round": 10}
    assert lines["sort"].tuples == 110
    assert {name for name, line in lines.items() if line.tuples is not None} == {"numbers", "sort", "evens", "odds"}


def test_what_a_bolt_has_not_acked_left_it_on_no_port(project: Any) -> None:
    acking = "acking: true\n        ack_timeout: 300ms"
    progress = counted(project, sorting(project, "Acks", "even: n bigint, odd: n bigint", acking))
    assert progress.failed == {"sort": 1}
    assert progress.ports == {"sort": {"even": 50, "odd": 49}}
    assert progress.tuples["sort"] == 99


def test_the_only_port_may_have_a_name(project: Any) -> None:
    project.write("own.py", OWN)
    topology = project.topology("""
        topology: single
        sources:
          numbers: {rows: [[0], [1], [2]], schema: "n bigint"}
        operators:
          sort: {from: numbers, custom: "own:Evens", emits: {even: n bigint}}
        sinks:
          evens: {from: sort.even, file: out/evens.jsonl}
        """)
    assert counted(project, topology).tuples["sort"] == 2
    assert project.json_lines("out/evens.jsonl") == [{"n": 0}, {"n": 2}]
