from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.scaling import Size, chain, line_through


def test_what_does_not_grow_is_told_from_what_does() -> None:
    fixed, each = line_through([(100, 2.0), (500, 4.0), (1100, 7.0)])
    assert (fixed, each) == (pytest.approx(1.5), pytest.approx(0.005))
    assert line_through([(3, 2.0)]) == (2.0, 0.0)


@pytest.mark.parametrize("operators", [1, 3, 8])
def test_a_chain_has_so_many_operators(operators: int, tmp_path: Path) -> None:
    topology = chain(Size(1000, operators), tmp_path)
    assert len(topology.operators) == operators
