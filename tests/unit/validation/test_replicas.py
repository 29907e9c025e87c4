from __future__ import annotations

from typing import Any

import pytest

from penstock.topology.model import Topology
from penstock.validation.replicas import check_replicas

A, B = "spark://a:7077", "spark://b:7077"


def said(**settings: Any) -> list[str]:
    return [str(problem) for problem in check_replicas(Topology("t", **settings))]


@pytest.mark.parametrize(("replicas", "cells"), [(1, ("local",)), (2, (A, B)), (2, ("local", A)), (9, ("any",))])
def test_as_many_replicas_as_there_are_cells_are_possible(replicas: int, cells: tuple[str, ...]) -> None:
    assert said(replicas=replicas, cells=cells) == []


@pytest.mark.parametrize(("replicas", "cells", "words"), [
    (2, ("local",), "2 replicas need 2 cells, and there is one: local"),
    (3, (A, B), f"3 replicas need 3 cells, and there are 2: {A}, {B}"),
])
def test_more_replicas_than_cells_are_refused(replicas: int, cells: tuple[str, ...], words: str) -> None:
    (problem,) = said(replicas=replicas, cells=cells)
    assert words in problem
    assert "write `cells: any` to have replicas share one" in problem


def test_a_cell_that_is_named_twice_is_one() -> None:
    twice, too_few = said(replicas=2, cells=(A, A))
    assert f"cell '{A}' is named twice" in twice
    assert "2 replicas need 2 cells, and there is one" in too_few


@pytest.mark.parametrize("replicas", [0, -1, 10, True, "two"])
def test_a_number_of_replicas_that_makes_no_sense_is_refused(replicas: object) -> None:
    assert [f"replicas {replicas} is impossible" in problem for problem in said(replicas=replicas)] == [True]


def test_a_cell_is_a_place_that_spark_knows() -> None:
    assert [f"cell '{cell}' is neither" in problem for cell, problem in zip(
        ["node-b"], said(replicas=1, cells=("node-b",)), strict=True)] == [True]
    assert "`any` stands for all of them" in said(replicas=2, cells=("any", A))[0]
