from __future__ import annotations

import pytest

from penstock.runtime.instances import asked_instances, instances
from penstock.topology.model import Count, Filter, Operator, StreamRef, Topology


def topology(parallelism: int | None, *more: Operator) -> Topology:
    return Topology("t", operators=(Count("counts", (StreamRef("s"),), keys=("word",), parallelism=parallelism), *more))


def test_only_operators_with_state_are_asked() -> None:
    other = Filter("some", (StreamRef("s"),), condition="true", parallelism=9)
    assert asked_instances(topology(None, other)) is None
    assert asked_instances(topology(3, other, Count("all", (StreamRef("s"),), parallelism=5))) == 5


@pytest.mark.parametrize(("asked", "number"), [(None, 2), (3, 3)])
def test_a_first_start_takes_what_the_file_asks_for_or_as_many_as_cores(asked: int | None, number: int) -> None:
    assert instances(topology(asked), 2, None) == number


@pytest.mark.parametrize("asked", [None, 4])
def test_state_stays_divided_as_it_is_whatever_the_machine(asked: int | None) -> None:
    shape = {"state": {"counts": {}}, "state partitions": 7, "asked instances": asked}
    assert instances(topology(asked), 2, shape) == 7


def test_a_file_that_asks_for_another_number_since_is_heard() -> None:
    shape = {"state": {"counts": {}}, "state partitions": 7, "asked instances": 4}
    assert instances(topology(5), 2, shape) == 5
    assert instances(topology(7), 2, shape) == 7
    assert instances(topology(None), 2, shape) == 7


def test_a_shape_from_before_it_was_noted_counts_as_asked_for() -> None:
    shape = {"state": {"counts": {}}, "state partitions": 4}
    assert instances(topology(4), 2, shape) == 4
    assert instances(topology(5), 2, shape) == 5
    assert instances(topology(None), 2, shape) == 4


def test_without_state_nothing_is_divided() -> None:
    assert instances(topology(None), 2, {"state": {}, "state partitions": 7}) == 2
