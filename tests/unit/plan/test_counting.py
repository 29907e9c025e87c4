from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.connectors.registry import catalogue
from penstock.plan.counting import Measured, counts_needed, derive_counts, derive_port_counts, ports_to_count
from penstock.plan.graph import Plan, build_plan
from penstock.plan.rewrites import rewrite
from penstock.topology.model import Topology
from penstock.topology.yaml_reader import read_topology_text


def topology() -> Topology:
    return (
        Topology("t")
        .source("lines", file="a.txt")
        .filter("value <> ''", name="full")
        .select("upper(value) as value", name="loud")
        .count("value", name="counts")
        .sink("out", console=True)
        .stream("full")
        .filter("value = 'x'", name="found")
        .select("value", name="shown")
        .sink("found", console=True)
    )


def test_an_operator_whose_tuples_all_reach_one_sink_is_counted_there() -> None:
    assert counts_needed(build_plan(topology())) == {"full"}


def test_counts_are_measured_or_follow_from_inputs_or_sinks() -> None:
    counts = derive_counts(build_plan(topology()), Measured({"lines": 9, "full": 7}, {"out": 3, "found": 2}))
    assert counts == {"full": 7, "loud": 7, "counts": 3, "found": 2, "shown": 2}


def test_of_filters_in_a_row_each_is_counted() -> None:
    chained = (
        Topology("t").source("lines", file="a.txt").filter("value <> ''", name="a").filter("value <> 'x'", name="b")
    ).sink("out", console=True)
    plan = rewrite(build_plan(chained))
    assert counts_needed(plan) == {"a"}
    assert derive_counts(plan, Measured({"lines": 5, "a": 4}, {"out": 2})) == {"a": 4, "b": 2}


def test_what_passes_all_tuples_on_is_known_also_when_a_rewrite_took_it_away() -> None:
    lines = Topology("t").source("lines", file="a.txt")
    both = lines.filter("value <> ''", name="full").union(lines, name="both").dup(name="again")
    plan = rewrite(build_plan(both.count("value", name="counts").sink("out", console=True)))
    assert {"both", "again"}.isdisjoint(step.id for step in plan.steps)
    counts = derive_counts(plan, Measured({"lines": 9, "full": 7}, {"out": 3}))
    assert counts == {"full": 7, "both": 16, "again": 16, "counts": 3}
    # And while its input has not been counted yet, it is not either.
    assert derive_counts(plan, Measured({"lines": 9}, {"out": 3}))["again"] is None


SPLIT = {"words": "word string", "short": "word string"}


def two_ports(**more: dict[str, Any]) -> Plan:
    """A bolt whose ports are read by a sink each, and by whatever is given."""
    text = {
        "topology": "t",
        "sources": {"lines": {"generator": {"sentence": "text"}, "count": 10}},
        "operators": {
            "split": {"from": "lines", "custom": "own:Split", "emits": SPLIT},
            "loud": {"from": "split.words", "select": "upper(word) as word"},
            **more,
        },
        "sinks": {"short": {"from": "split.short", "console": None}, "out": {"from": "loud", "console": None}},
    }
    topology, problems = read_topology_text(json.dumps(text), "t.yaml", Path(), catalogue(), {})
    assert topology is not None, problems
    return build_plan(topology)


def of_ports(plan: Plan, short: int, out: int, measured: dict[str, int] | None = None) -> dict[str, int]:
    ports = {} if measured is None else {"split": measured}
    counted = Measured({"lines": 5, "split": 12}, {"short": short, "out": out}, ports)
    return derive_port_counts(plan, counted)["split"]


def test_what_a_port_gives_is_told_by_its_sink() -> None:
    assert of_ports(two_ports(), short=4, out=7) == {"words": 7, "short": 4}


def test_what_a_port_gives_is_the_rest_where_all_others_are_known() -> None:
    plan = two_ports(counts={"from": "split.words", "count": "word"})
    assert of_ports(plan, short=4, out=8) == {"words": 8, "short": 4}
    # And what reads one port is not told to have as much as all ports give.
    counted = Measured({"lines": 5, "split": 12, "counts": 3}, {"short": 4, "out": 8})
    assert derive_counts(plan, counted)["loud"] == 8


def test_a_port_that_nobody_has_counted_yet_is_unknown() -> None:
    plan = two_ports(rest={"from": "split.short", "count": "word"}, counts={"from": "split.words", "count": "word"})
    assert of_ports(plan, short=4, out=8) == {}


def test_ports_are_counted_where_there_are_several() -> None:
    operators = {operator.name: operator for operator in two_ports().topology.operators}
    assert ports_to_count(operators["split"]) == ("words", "short")
    assert ports_to_count(operators["loud"]) == ()


def test_what_was_measured_of_a_port_needs_no_sink_and_counts_before_one() -> None:
    measured = {"words": 7, "short": 5}
    assert of_ports(two_ports(), 4, 8, measured) == measured
    plan = two_ports(rest={"from": "split.short", "count": "word"}, counts={"from": "split.words", "count": "word"})
    assert of_ports(plan, 4, 8, measured) == measured
    # What passes all of a port on gives as much.
    assert derive_counts(plan, Measured({"lines": 5, "split": 12}, {}, {"split": measured}))["loud"] == 7


def test_a_port_that_nobody_reads_is_told_where_it_was_measured() -> None:
    measured = {"words": 7, "short": 5}
    topology = two_ports().topology
    unread = replace(topology, sinks=tuple(sink for sink in topology.sinks if sink.name != "short"))
    assert of_ports(rewrite(build_plan(unread)), 0, 7, measured) == measured
