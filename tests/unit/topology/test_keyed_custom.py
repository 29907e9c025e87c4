"""The field `key` of custom operators, from the file to the plan and to what a checkpoint depends on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock import Topology
from penstock.connectors.registry import catalogue
from penstock.plan.graph import Apply, Exchange, build_plan
from penstock.plan.rewrites import rewrite
from penstock.runtime.compatibility import changes, shape_of
from penstock.topology.loading import load_topology
from penstock.topology.model import Custom, Operator
from penstock.topology.yaml_writer import write_topology

FILE = """
topology: t
sources:
  s: {rows: [], schema: "card string, shop string"}
operators:
  o: {from: s, custom: "own:f", key: %s, emits: "card string"%s}
sinks:
  out: {from: o, console: }
"""


def loaded(folder: Path, key: str, more: str = "") -> Topology:
    (folder / "own.py").write_text("def f(tup, context): ...\n")
    (folder / "t.yaml").write_text(FILE % (key, more))
    topology, problems = load_topology(folder / "t.yaml", catalogue())
    assert topology is not None
    assert problems == []
    return topology


def the_operator(topology: Topology) -> Custom:
    (operator,) = topology.operators
    assert isinstance(operator, Custom)
    return operator


@pytest.mark.parametrize(("written", "key"), [("card", ("card",)), ("[card, shop]", ("card", "shop"))])
def test_a_key_is_read_and_written(tmp_path: Path, written: str, key: tuple[str, ...]) -> None:
    topology = loaded(tmp_path, written)
    assert the_operator(topology).key == key
    (tmp_path / "again.yaml").write_text(write_topology(topology))
    again, _ = load_topology(tmp_path / "again.yaml", catalogue())
    assert again == topology


def test_custom_code_is_stateful_when_it_has_a_key(tmp_path: Path) -> None:
    operator = the_operator(loaded(tmp_path, "card"))
    assert operator.stateful
    assert not replace(operator, key=()).stateful
    assert not Operator.stateful


def test_the_builder_takes_a_key() -> None:
    built = Topology("t").source("s", rows=[], schema="card string").custom("own:f", key="card", emits="card string")
    assert the_operator(built.topology).key == ("card",)


def test_a_route_that_the_key_repeats_is_dropped(tmp_path: Path) -> None:
    for more in (", parallelism: 3", ", route: hash(card)", ""):
        plan = rewrite(build_plan(loaded(tmp_path, "card", more)))
        assert [step.id for step in plan.steps if isinstance(step, Apply)] == ["o"]
        assert not any(isinstance(step, Exchange) for step in plan.steps)


def test_a_checkpoint_depends_on_the_key_and_not_on_the_code(tmp_path: Path) -> None:
    old = loaded(tmp_path, "card")
    same = replace(old, operators=(replace(the_operator(old), code="own:g"),))
    assert changes(shape_of(old, 2), shape_of(same, 2)) == []
    other = replace(old, operators=(replace(the_operator(old), key=("shop",)),))
    assert changes(shape_of(old, 2), shape_of(other, 2)) == ["stateful operator 'o': key was card, now shop"]
    without = replace(old, operators=(replace(the_operator(old), key=()),))
    assert changes(shape_of(old, 2), shape_of(without, 2)) == ["stateful operator 'o' is gone"]
