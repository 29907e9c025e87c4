from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from penstock.bench.scaling import ONE_TUPLE, Size, chain, operator_share, per_core, spread, steps
from penstock.cli.bench_scaling import operators_table, tuples_table, verdicts
from penstock.topology.model import Filter, Select

FOUND = {
    ONE_TUPLE: [0.5, 0.6, 0.4],
    Size(100_000, 3): [0.7], Size(1_000_000, 3): [2.5], Size(10_000_000, 3): [20.5], Size(100_000_000, 3): [240.5],
    Size(10_000_000, 1): [20.0], Size(10_000_000, 2): [20.4], Size(10_000_000, 8): [22.0],
}  # fmt: skip


def test_throughput_is_judged_as_it_was_measured_and_without_what_does_not_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert [row[2:] for row in tuples_table(FOUND).rows] == [
        ["71,429", "250,000"], ["200,000", "250,000"], ["243,902", "250,000"], ["207,900", "208,333"]]
    said = verdicts(FOUND)
    assert said[1] == "tuples/s per core as measured: within 71% (goal: 20%): not held"
    assert said[2] == "tuples/s per core without the fixed cost: within 17% (goal: 20%): held"


def test_a_further_operator_is_judged_by_all_chains() -> None:
    assert [row[2] for row in operators_table(FOUND).rows] == ["", "+2.0%", "+0.5%", "+1.4%"]
    assert verdicts(FOUND)[3].endswith("of the time with 1 (goal: under 5%): held")
    assert operator_share({1: 10.0, 2: 10.6, 3: 11.2}) == pytest.approx(0.06)
    assert steps({2: 10.0, 4: 12.5}) == {4: pytest.approx(0.1)}


def test_the_spread_is_of_the_most() -> None:
    assert spread(per_core({10: 1.0, 100: 5.0}, 2)) == pytest.approx(0.5)


@pytest.mark.parametrize("operators", [1, 3, 8])
def test_a_chain_has_so_many_operators_of_which_none_is_as_another(operators: int, tmp_path: Path) -> None:
    nodes = list(chain(Size(1000, operators), tmp_path).operators)
    assert len(nodes) == operators
    conditions = [node.condition for node in nodes if isinstance(node, Filter)]
    assert len(set(conditions)) == len(conditions)
    # Filters and selects take turns: between two of a kind there is always one of the other.
    assert all(type(one) is not type(other) for one, other in pairwise(nodes[:-1]))
    assert isinstance(nodes[-1], Select)
