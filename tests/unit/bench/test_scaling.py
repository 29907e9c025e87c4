from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from penstock.bench import scaling
from penstock.bench.scaling import ONE_TUPLE, Size, chain, left_to_measure, operator_share, per_core, spread, steps
from penstock.cli.bench_scaling import operators_table, tuples_table, verdicts
from penstock.errors import DeliveryError
from penstock.spark import session
from penstock.topology.model import Filter, Select

from ..cli.typed import penstock

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
    said = verdicts(FOUND, list(FOUND))
    assert said[1] == "tuples/s per core as measured: within 71% (goal: 20%): not held"
    assert said[2] == "tuples/s per core without the fixed cost: within 17% (goal: 20%): held"


def test_a_further_operator_is_judged_by_all_chains() -> None:
    assert [row[2] for row in operators_table(FOUND).rows] == ["", "+2.0%", "+0.5%", "+1.4%"]
    assert verdicts(FOUND, list(FOUND))[3].endswith("of the time with 1 (goal: under 5%): held")
    assert operator_share({1: 10.0, 2: 10.6, 3: 11.2}) == pytest.approx(0.06)
    assert steps({2: 10.0, 4: 12.5}) == {4: pytest.approx(0.1)}


def test_nothing_is_judged_before_all_sizes_are_measured() -> None:
    assert verdicts({ONE_TUPLE: [0.5], Size(10, 3): [1.0, 2.0]}, [ONE_TUPLE, Size(10, 3), Size(2000, 3)], 2) == [
        "medians of 1 or 2; a run of one tuple: 0.50 s", "of earlier runs of the tool: 2 of 3 runs",
        "not measured yet: 2,000 tuples through 3"]


def test_runs_that_are_found_are_not_made_again() -> None:
    one, other = Size(10, 3), Size(20, 3)
    assert left_to_measure([one, other], 2, {}) == [one, other, one, other]
    assert left_to_measure([one, other], 3, {one: [1.0, 2.0], other: [1.0]}) == [other, one, other]


@pytest.fixture
def stopped_after_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs take a second for each tuple, and the fourth fails; there is no Spark."""

    def measure(_: object, wanted: Sequence[Size], *__: object) -> Iterator[tuple[Size, float]]:
        yield from ((size, float(size.tuples)) for size in wanted[:3])
        if len(wanted) > 3:
            raise DeliveryError("the disk is full")

    monkeypatch.setattr(scaling, "measure_sizes", measure)
    monkeypatch.setattr(session, "prepare_workers", lambda _: None)
    monkeypatch.setattr(session, "start_session", lambda _: SimpleNamespace(stop=lambda: None))


@pytest.mark.usefixtures("stopped_after_three")
def test_a_page_is_written_after_every_run_and_the_rest_can_be_measured_later(tmp_path: Path) -> None:
    page, done = tmp_path / "page.md", tmp_path / "done.jsonl"
    options = ("bench", "scaling", "--tuples", "10,20", "--operators", "1,2", "--repetitions", "1", "--json",
               "--markdown", str(page), "--svg", str(tmp_path / "images"))  # fmt: skip
    first = penstock(*options)
    assert isinstance(first.exception, DeliveryError)
    assert "| 20 | 20.00 |" in page.read_text()
    assert "- not measured yet: 10,000,000 tuples through 1, 10,000,000 tuples through 2" in page.read_text()
    assert "(images/scaling-tuples.svg)" in page.read_text()
    done.write_text(first.stdout)
    second = penstock(*options, "--beside", str(done))
    assert second.exit_code == 0
    assert [json.loads(line)["operators"] for line in second.stdout.splitlines()] == [1, 2]
    assert "- of earlier runs of the tool: 3 of 5 runs" in page.read_text()
    assert "- each further operator" in page.read_text()
    ElementTree.fromstring((tmp_path / "images" / "scaling-operators.svg").read_text())
    done.write_text(first.stdout + second.stdout)
    assert penstock(*options, "--beside", str(done)).stdout == "", "all of it was there already"


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
