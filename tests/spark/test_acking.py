"""Bolts that ack their tuples themselves: a tuple that is not acked is replayed, and nothing of it is seen before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from penstock import OperatorError
from penstock.testing import run_on
from penstock.topology.model import Topology

OWN = """
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from penstock import Bolt

    def times_asked(number):
        with Path(f"asked-{number}").open("a+") as file:
            file.write(".")
            file.seek(0)
            return len(file.read())

    class Forgets(Bolt):
        auto_ack = False

        def process(self, tup):
            self.emit(tup.number)
            if tup.number % 50 != 7:
                self.ack(tup)

    class Asks(Bolt):
        '''A client of a service that answers in threads, and not always the first time.'''
        auto_ack = False

        def initialize(self):
            self.pool = ThreadPoolExecutor(4)
            self.lost = []

        def process(self, tup):
            self.pool.submit(self.answer, tup)

        def answer(self, tup):
            if tup.number % 50 == 7:
                if times_asked(tup.number) == 1:
                    self.lost.append(tup)
                    return
                # What was lost is answered after all, when the tuple is here again and waits for its own answer.
                for late in (late for late in self.lost if late.number == tup.number):
                    self.emit(late.number, -1, anchor=late)
                    self.ack(late)
            self.emit(tup.number, tup.number % 3, anchor=tup)
            self.ack(tup)

    class Gathers(Bolt):
        '''Holds all tuples back, and writes them in one go.'''
        auto_ack = False

        def initialize(self):
            self.held = []

        def process(self, tup):
            self.held.append(tup)

        def finish(self):
            held, self.held = self.held, []
            for tup in held:
                self.emit(tup.number, len(held), anchor=tup)
                self.ack(tup)

    def same(tup):
        return tup.number, 0
    """


def acking(project: Any, operators: str, sinks: str, count: int = 100) -> Topology:
    project.write("own.py", OWN)
    rows = ", ".join(f"[{number}]" for number in range(count))
    topology: Topology = project.topology(f"""
        topology: acking
        acking: true
        ack_timeout: 300ms
        epoch: {{max_tuples: 50}}
        dead_letters: out/dead.jsonl
        sources:
          numbers: {{rows: [{rows}], schema: "number bigint"}}
        operators:
          {operators}
        sinks:
          {sinks}
        """)
    return topology


def forgets(on_error: str) -> str:
    return f'own: {{from: numbers, custom: "own:Forgets", emits: "number bigint", on_error: {on_error}}}'


OUT = "out: {from: own, file: out/out.jsonl}"


def received(project: Any, name: str = "out") -> list[int]:
    return sorted(row["number"] for row in project.json_lines(f"out/{name}.jsonl"))


def test_a_tuple_that_is_never_acked_is_replayed_and_then_buried(project: Any) -> None:
    """In between no sink and no state sees anything of it; in the end all but the bolt does, once."""
    operators = f"{forgets('retry(2)')}\n          total: {{from: numbers, count: }}"
    outcome = project.run(acking(project, operators, f"{OUT}\n          total: {{from: total, file: out/total.jsonl}}"))
    assert received(project) == [number for number in range(100) if number % 50 != 7]
    totals = [row["count"] for row in project.json_lines("out/total.jsonl")]
    assert (totals[0], totals[-1]) == (49, 100)
    letters = sorted(project.json_lines("out/dead.jsonl"), key=lambda letter: letter["tuple"]["number"])
    assert [(letter["tuple"], letter["operator"], letter["error"], letter["attempts"]) for letter in letters] == [
        ({"number": number}, "own", "not acked within 0.3 s", 3) for number in (7, 57)]
    assert outcome.progress.failed == {"own": 2}
    assert outcome.progress.retried == 4


def test_a_fan_out_is_complete_when_every_bolt_has_acked(project: Any) -> None:
    """One acks from threads, at the second attempt; the other in `finish`. Nothing of either is seen twice."""
    operators = """own: {from: numbers, custom: "own:Asks", emits: "number bigint, third bigint", on_error: retry(3)}
          gathered: {from: numbers, custom: "own:Gathers", emits: "number bigint, held int", route: global}"""
    sinks = f"{OUT}\n          gathered: {{from: gathered, file: out/g.jsonl}}"
    outcome = project.run(acking(project, operators, sinks))
    assert sorted((row["number"], row["third"]) for row in project.json_lines("out/out.jsonl")) == [
        (number, number % 3) for number in range(100)]
    assert received(project, "g") == list(range(100))
    assert Counter(row["held"] for row in project.json_lines("out/g.jsonl")) == {49: 49, 50: 50, 1: 1}
    assert outcome.progress.failed == {}
    assert outcome.progress.retried == 2


def test_without_on_error_a_tuple_that_is_not_acked_ends_the_run(project: Any) -> None:
    with pytest.raises(OperatorError, match="operator 'own'") as caught:
        project.run(acking(project, forgets("fail"), OUT, count=50))
    said = str(caught.value)
    assert "topology.yaml:9" in said
    assert "a tuple was not acked within 0.3 s" in said
    assert '{"number": 7}' in said


def test_copies_of_a_tuple_that_no_instance_acks_do_not_cancel_out(project: Any) -> None:
    project.write("own.py", OWN)
    stream = Topology("copies", acking=True, ack_timeout=0.2).source("numbers", rows=[], schema="number bigint")
    own = stream.custom("own:Forgets", emits="number bigint", on_error="drop", route="all", parallelism=2)
    topology = own.sink("out", memory=True).with_folder(project.folder)
    result = run_on(topology, numbers=[[6], [7]])
    assert [row["number"] for row in result["out"]] == [6, 6]
    assert result.progress.failed == {"custom": 2}


def test_only_acks_cost_anything(project: Any) -> None:
    """A topology without bolts that ack by themselves has the same plan with acking and without."""
    project.write("own.py", OWN)
    stream = Topology("plain").source("numbers", rows=[[1]], schema="number bigint")
    plain = stream.custom("own:same", emits="number bigint, zero int").sink("out", memory=True)
    plain = plain.with_folder(project.folder)

    def explained(topology: Topology) -> str:
        return "".join(part for part in project.plan(topology).split("#") if not part[:1].isdigit())

    assert explained(plain) == explained(replace(plain, acking=True))
