from __future__ import annotations

from penstock.replication.placement import choose_cell

CELLS = ("spark://a:7077", "spark://b:7077", "spark://c:7077")


def test_a_replica_goes_where_no_sibling_is() -> None:
    assert choose_cell(CELLS, []) == CELLS[0]
    assert choose_cell(CELLS, [CELLS[0]]) == CELLS[1]
    assert choose_cell(CELLS, [CELLS[1], CELLS[0]]) == CELLS[2]


def test_a_sick_cell_is_the_last_resort() -> None:
    assert choose_cell(CELLS, [CELLS[0]], sick={CELLS[1]: 5.0}) == CELLS[2]
    assert choose_cell(CELLS, [CELLS[0], CELLS[2]], sick={CELLS[1]: 5.0}) == CELLS[1]


def test_of_sick_cells_the_one_is_taken_that_has_had_the_longest_time_to_heal() -> None:
    assert choose_cell(CELLS, [CELLS[0]], sick={CELLS[1]: 5.0, CELLS[2]: 4.0}) == CELLS[2]


def test_two_replicas_never_share_a_cell() -> None:
    assert choose_cell(CELLS, CELLS) is None


def test_any_cell_is_this_machine_as_often_as_wanted() -> None:
    assert choose_cell(("any",), []) == "local"
    assert choose_cell(("any",), ["local", "local"]) == "local"
