from __future__ import annotations

from collections import namedtuple
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.emitted import Misfit, batch_for_rows, batches_of
from penstock.spark.numbering import SEQUENCE
from penstock.spark.tuples import rows_of
from penstock.topology.schema import parse_schema

SCHEMA = parse_schema("id int, name string")
EMITS = (("", SCHEMA),)


class Backwards(tuple[Any, ...]):
    """Finds its values from the end, as only its own class knows."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(-1 - key)


def rows(emitted: list[Any]) -> list[tuple[Any, ...]]:
    [batch] = batches_of([("", number, each) for number, each in enumerate(emitted)], EMITS, range(10, 20))
    assert batch.column(SEQUENCE).to_pylist() == list(range(10, 10 + len(emitted)))
    return [(row["id"], row["name"]) for row in batch.to_pylist()]


def test_tuples_lists_and_dicts_are_put_into_the_same_columns() -> None:
    assert rows([(1, "a"), [2, "b"], {"name": "c", "id": 3}]) == [(1, "a"), (2, "b"), (3, "c")]


def test_values_of_a_class_of_ones_own_stand_where_they_were_put() -> None:
    named = namedtuple("named", "id, name")
    assert rows([named(1, "a"), Backwards((2, "b"))]) == [(1, "a"), (2, "b")]


def test_the_tuples_that_code_is_given_can_be_emitted_again() -> None:
    given = pa.RecordBatch.from_pydict({"id": [1, 2], "name": ["a", "b"]})
    assert rows(list(rows_of(given, ("id", "name")))) == [(1, "a"), (2, "b")]


def test_one_tuple_for_each_row_keeps_the_rows_sequences() -> None:
    batch = batch_for_rows([(1, "a"), (2, None)], SCHEMA, pa.array([7, 9], pa.int64()))
    assert batch.to_pydict() == {"id": [1, 2], "name": ["a", None], SEQUENCE: [7, 9]}


@pytest.mark.parametrize("wrong", [(1,), (1, "a", 2), [1], ("one", "a"), (1, 2)])
def test_what_does_not_fit_is_told(wrong: Any) -> None:
    with pytest.raises(Misfit):
        rows([(1, "a"), wrong])
