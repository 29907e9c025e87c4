from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.connectors.registry import catalogue
from penstock.plan.counting import counts_needed, derive_counts, derive_port_counts
from penstock.plan.graph import Plan, build_plan
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
    counts = derive_counts(build_plan(topology()), {"lines": 9, "full": 7}, {"out": 3, "found": 2})
    assert counts == {"full": 7, "loud": 7, "counts": 3, "found": 2, "shown": 2}


def test_an_operator_that_a_rewrite_took_away_is_unknown() -> None:
    from penstock.plan.rewrites import rewrite

    chained = (
        Topology("t").source("lines", file="a.txt").filter("value <> ''", name="a").filter("value <> 'x'", name="b")
    ).sink("out", console=True)
    counts = derive_counts(rewrite(build_plan(chained)), {"lines": 5}, {"out": 2})
    assert set(counts) == {"a", "b"}
    assert None in counts.values()
    assert 2 in counts.values()


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


def of_ports(plan: Plan, short: int, out: int) -> dict[str, int]:
    return derive_port_counts(plan, {"lines": 5, "split": 12}, {"short": short, "out": out})["split"]


def test_what_a_port_gives_is_told_by_its_sink() -> None:
    assert of_ports(two_ports(), short=4, out=7) == {"words": 7, "short": 4}


def test_what_a_port_gives_is_the_rest_where_all_others_are_known() -> None:
    plan = two_ports(counts={"from": "split.words", "count": "word"})
    assert of_ports(plan, short=4, out=8) == {"words": 8, "short": 4}
    # And what reads one port is not told to have as much as all ports give.
    assert derive_counts(plan, {"lines": 5, "split": 12, "counts": 3}, {"short": 4, "out": 8})["loud"] == 8


def test_a_port_that_nobody_counts_is_unknown() -> None:
    plan = two_ports(rest={"from": "split.short", "count": "word"}, counts={"from": "split.words", "count": "word"})
    assert of_ports(plan, short=4, out=8) == {}
