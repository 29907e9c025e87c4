"""The acker in the plan: where it stands, and that it stands only where something acks by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.plan.graph import UNACKED, Acker, Plan, Port, Share, build_plan
from penstock.plan.rewrites import rewrite
from penstock.plan.text import plan_text
from penstock.runtime.compatibility import changes, shape_of
from penstock.topology.model import Topology

CODE = """
from penstock import Bolt

class Acks(Bolt):
    auto_ack = False
    def process(self, tup): self.ack(tup)

def plain(tup): return tup
"""


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """Two bolts that ack by themselves, one of them read by a sink; and a function."""
    (tmp_path / "plan_code.py").write_text(CODE)
    start = Topology("t", acking=True, folder=tmp_path)
    numbers = start.source("numbers", generator={"n": "sequence"}, count=3)
    read = numbers.custom("plan_code:Acks", emits="n bigint", name="read").sink("out", console=True)
    unread = read.stream("numbers").custom("plan_code:Acks", emits="n bigint", name="unread")
    return unread.topology.stream("numbers").custom("plan_code:plain", emits="n bigint", name="function").sink(
        "more", console=True)


def built(topology: Topology) -> Plan:
    return rewrite(build_plan(topology))


def test_the_acker_reads_a_hidden_port_of_every_bolt_that_acks(topology: Topology) -> None:
    plan = built(topology)
    assert plan.steps[-1] == Acker("acker", (f"read.{UNACKED}", f"unread.{UNACKED}"), ("read", "unread"))
    assert plan.self_acking == {"read", "unread"}
    assert plan.step(f"read.{UNACKED}") == Port(f"read.{UNACKED}", "read.share", UNACKED)
    assert plan.step("read.default") == Port("read.default", "read.share", "")
    assert plan.step("read.share") == Share("read.share", "read", 2)


def test_a_bolt_that_acks_is_run_even_if_nobody_reads_it(topology: Topology) -> None:
    assert built(topology).step(f"unread.{UNACKED}") == Port(f"unread.{UNACKED}", "unread", UNACKED)


def test_without_acking_the_plan_knows_nothing_of_it(topology: Topology) -> None:
    plan = built(replace(topology, acking=False))
    assert not any(isinstance(step, Acker | Port) for step in plan.steps)
    assert "dropped 'unread': no sink needs it" in plan.notes


def test_nothing_to_ack_no_acker(topology: Topology) -> None:
    plain = replace(topology, operators=topology.operators[2:], sinks=topology.sinks[1:])
    assert built(plain).steps == built(replace(plain, acking=False)).steps


def test_the_plan_shows_the_acker(topology: Topology) -> None:
    shown = plan_text(built(topology))
    assert "● acker" in shown
    assert "whether read, unread acked every tuple" in shown
    assert f"port {UNACKED}" in shown


def test_a_checkpoint_does_not_fit_once_other_operators_ack(topology: Topology) -> None:
    without = shape_of(replace(topology, acking=False), 2)
    assert changes(without, shape_of(topology, 2)) == [
        "the operators that ack by themselves were none, now read, unread"]
    del without["acking"]
    assert changes(without, shape_of(replace(topology, acking=False), 2)) == []
