from __future__ import annotations

import pytest

from penstock.plan.graph import build_plan
from penstock.plan.pruning import columns_read, mentioned
from penstock.topology.builder import Stream
from penstock.topology.model import Topology


def events() -> Stream:
    return Topology("t").source("events", file="e.jsonl", schema="id int, User string, kind string, price double")


def read(topology: Topology) -> frozenset[str] | None:
    return columns_read(build_plan(topology))["events"]


def test_only_what_is_filtered_selected_and_counted_is_read() -> None:
    topology = events().filter("price > 10").select("User as who", "kind").count("who").sink("out", console=True)
    assert read(topology) == {"price", "user", "kind", "who"}  # an alias too many does no harm


def test_a_sink_that_sees_whole_tuples_needs_them_all() -> None:
    assert read(events().filter("price > 10").sink("out", console=True)) is None


def test_custom_code_sees_whole_tuples() -> None:
    topology = events().custom("m:f", emits="x int").count("x").sink("out", console=True)
    assert read(topology) is None


def test_all_branches_of_a_fan_out_are_served() -> None:
    topology = events().count("kind").sink("kinds", console=True)
    topology = topology.stream("events").uniq("User").select("id").sink("users", console=True)
    assert read(topology) == {"kind", "user", "id"}


def test_the_fields_of_a_route_are_read() -> None:
    topology = events().select("kind", route="hash(User)", parallelism=2).sink("out", console=True)
    assert read(topology) == {"kind", "user"}


def test_a_count_of_everything_reads_no_column() -> None:
    assert read(events().count().sink("out", console=True)) == frozenset()


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("a + b * 2 as c", {"a", "b", "c"}),
        ("upper(`User`)", {"user"}),
        ("address.street = 'x'", {"address", "street"}),
        ("explode(split(line, ' '))", {"line"}),
        ("transform(tags, t -> upper(t))", {"tags", "t"}),
    ],
)
def test_columns_are_found_in_expressions(expression: str, columns: set[str]) -> None:
    assert mentioned([expression]) == columns


@pytest.mark.parametrize("expression", ["*", "a, ((", "struct(*) as all"])
def test_what_cannot_be_told_means_all(expression: str) -> None:
    assert mentioned([expression]) is None
