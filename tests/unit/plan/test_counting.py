from __future__ import annotations

from penstock.plan.counting import counts_needed, derive_counts
from penstock.plan.graph import build_plan
from penstock.topology.model import Topology


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
