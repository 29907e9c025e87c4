"""Which bolts may ack by themselves, and in which topologies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.topology.acking import acks_itself
from penstock.topology.model import Custom, Delivery, FrozenOptions, Location, Sink, Source, StreamRef, Topology
from penstock.topology.on_error import parse_on_error
from penstock.topology.schema import parse_schema
from penstock.validation.custom_code import check_custom_code
from penstock.validation.graph import check_graph
from penstock.validation.on_error import check_on_error
from penstock.validation.settings import check_settings

CODE = '''
from penstock import Bolt

class Acks(Bolt):
    auto_ack = False
    def process(self, tup): self.ack(tup)

class Inherits(Acks):
    pass

class Plain(Bolt):
    def process(self, tup): pass

class Finishes(Plain):
    def finish(self): pass

class Duck:
    auto_ack = False
    def process(self, tup): pass

def function(tup): return tup
'''
IN = (StreamRef("in"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ackcode.py").write_text(CODE)
    return tmp_path


def topology(folder: Path, name: str, acking: bool = True, **settings: Any) -> Topology:
    on_error = parse_on_error(settings.pop("on_error", "fail"))
    operator = Custom("o", IN, code=f"ackcode:{name}", emits=(("", parse_schema("x int")),), on_error=on_error,
                      where=Location("t.yaml", 7))
    return Topology("t", operators=(operator,), folder=folder, acking=acking, **settings)


def problems(folder: Path, name: str, acking: bool = True) -> list[str]:
    return [str(problem) for problem in check_custom_code(topology(folder, name, acking), {})]


@pytest.mark.parametrize("name", ["Acks", "Inherits", "Plain", "function"])
def test_with_acking_a_bolt_may_ack_by_itself_and_need_not(folder: Path, name: str) -> None:
    assert problems(folder, name) == []


def test_acks_that_nobody_looks_at_are_a_problem(folder: Path) -> None:
    (problem,) = problems(folder, "Acks", acking=False)
    assert "t.yaml:7: operator 'o': class 'Acks' acks its tuples itself (auto_ack = False)" in problem
    assert "add `acking: true` to the topology" in problem


def test_a_finish_that_would_never_be_called_is_a_problem(folder: Path) -> None:
    (problem,) = problems(folder, "Finishes")
    assert "class 'Finishes' has finish(self)" in problem
    assert "auto_ack = False" in problem


@pytest.mark.parametrize(("name", "acking", "said"), [
    ("Acks", True, []), ("Plain", True, ["nobody reads operator 'o'"]), ("Acks", False, ["nobody reads operator 'o'"])])
def test_nobody_need_read_a_bolt_that_acks_by_itself(folder: Path, name: str, acking: bool, said: list[str]) -> None:
    source = Source("in", "generator", FrozenOptions())
    sink = Sink("out", StreamRef("in"), "console", FrozenOptions())
    made = replace(topology(folder, name, acking), sources=(source,), sinks=(sink,))
    assert [problem.message for problem in check_graph(made)] == said


@pytest.mark.parametrize(("more", "said"), [
    ({"key": ("x",)}, "its state cannot wait for an ack"), ({"input_ports": ("left",)}, "has several input ports")])
def test_a_bolt_with_a_key_or_input_ports_cannot_ack_by_itself(folder: Path, more: Any, said: str) -> None:
    made = topology(folder, "Acks")
    other = replace(made.operators[0], **more)
    (problem,) = check_custom_code(replace(made, operators=(other,)), {})
    assert said in str(problem)
    assert not acks_itself(other, made)


def test_only_a_bolt_can_ack(folder: Path) -> None:
    (problem,) = problems(folder, "Duck")
    assert "class 'Duck' has auto_ack = False, but is no Bolt" in problem


@pytest.mark.parametrize(("name", "acking", "acks"), [
    ("Acks", True, True), ("Inherits", True, True), ("Acks", False, False), ("Plain", True, False),
    ("Duck", True, False), ("function", True, False), ("missing", True, False)])
def test_who_acks_by_itself(folder: Path, name: str, acking: bool, acks: bool) -> None:
    made = topology(folder, name, acking)
    assert acks_itself(made.operators[0], made) is acks


@pytest.mark.parametrize("timeout", [0, -1.0, "30s", float("inf"), True])
def test_no_time_at_all_is_impossible(timeout: Any) -> None:
    (problem,) = check_settings(Topology("t", ack_timeout=timeout))
    assert f"ack_timeout {timeout} is impossible" in str(problem)


def test_at_most_once_refuses_to_replay_what_is_not_acked(folder: Path) -> None:
    made = topology(folder, "Acks", delivery=Delivery.AT_MOST_ONCE, on_error="retry(3)")
    (problem,) = check_on_error(made)
    assert "delivery: at-most-once never reads a tuple twice" in str(problem)
