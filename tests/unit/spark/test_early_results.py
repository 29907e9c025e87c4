"""Windows that appear in every so manieth epoch: each that has changed, once, with its newest row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.keyed_harness import MemoryStates
from penstock.spark.early_results import HoldingStage
from penstock.spark.faults import WorkerFault
from penstock.spark.key_columns import KeyColumns
from penstock.topology.context import PresentEpoch

COLUMNS = pa.schema([("key", pa.string()), ("n", pa.int64())])


def stage(every: int, columns: pa.Schema = COLUMNS) -> HoldingStage:
    return HoldingStage("operator 'w' (t.yaml:7)", every, KeyColumns(("key",), ("string",)), columns, str(Path()))


def rows_of(changed: dict[str, int]) -> list[pa.RecordBatch]:
    """As Spark hands over an epoch, in which nothing may have changed at all."""
    rows = [{"key": key, "n": changed[key]} for key in sorted(changed)]
    return [pa.RecordBatch.from_pylist(rows, COLUMNS)] if rows else []


def appearing(
    holding: HoldingStage, states: MemoryStates, epoch: int, changed: dict[str, int], last: bool = False
) -> list[tuple[str, int]]:
    batches = holding.appearing(iter(rows_of(changed)), states, PresentEpoch(epoch, 0, last))
    return sorted((row["key"], row["n"]) for batch in batches for row in batch.to_pylist())


changed_rows = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9))


@given(st.lists(changed_rows, min_size=1, max_size=12), st.integers(2, 5))
def test_each_window_that_has_changed_appears_once_with_its_newest_row(
    epochs: list[dict[str, int]], every: int
) -> None:
    states = MemoryStates()
    changed: dict[str, int] = {}
    for epoch, rows in enumerate(epochs, 1):
        changed |= rows
        last = epoch == len(epochs)
        found = appearing(stage(every), states, epoch, rows, last)
        if last or epoch % every == 0:
            assert found == sorted(changed.items())
            assert not states.encoded
            assert not states.entered
            changed = {}
        else:
            assert found == []


def test_what_waits_with_other_columns_is_said() -> None:
    states = MemoryStates()
    assert appearing(stage(2), states, 1, {"a": 1}) == []
    other = pa.schema([("key", pa.string()), ("n", pa.string())])
    with pytest.raises(WorkerFault, match=r"operator 'w' \(t.yaml:7\): .*other columns.*--fresh"):
        appearing(stage(2, other), states, 2, {})
