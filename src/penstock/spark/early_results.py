"""Windows that appear in every so manieth epoch: what has changed since waits in the state, the newest row of each.

Which epochs these are goes by the number of the epoch, and is the same when one is done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.connectors.arrow_types import arrow_type
from penstock.spark.arrow_stage import is_narrow
from penstock.spark.key_columns import KeyColumns, Run
from penstock.spark.keyed_stage import key_columns, transformed_with_state
from penstock.spark.keyed_state import KEYS_AT_ONCE
from penstock.spark.present_epoch import present_epoch
from penstock.spark.remembered_rows import decode_rows, encode_rows, told_of_other_columns
from penstock.spark.state_access import Change, StateAccess
from penstock.spark.state_socket import Key
from penstock.spark.worker_process import settle_in
from penstock.topology.context import PresentEpoch
from penstock.topology.window import WINDOW_START, Window

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering


def held_back(operator: Window, rows: DataFrame, lowering: Lowering) -> DataFrame:
    """The rows of windows that have changed, in the epochs in which they may appear; in the others, none."""
    if operator.every == 1:
        return rows
    place = f" ({operator.where})" if operator.where.line else ""
    key = key_columns(operator, (*operator.keys, WINDOW_START), rows)
    types = {field.name: field.dataType.simpleString() for field in rows.schema}
    columns = pa.schema([(name, arrow_type(written)) for name, written in types.items()])
    name = f"operator '{operator.name}'{place}"
    stage = HoldingStage(name, operator.every, key, columns, lowering.settings.state)
    schema = ", ".join(f"`{name}` {written}" for name, written in types.items())
    lowering.narrow &= is_narrow(rows.schema)
    return transformed_with_state(rows, stage, key, schema, stage.state)


@dataclass(frozen=True)
class HoldingStage:
    """Everything a worker needs to hold back the windows of one operator."""

    operator: str
    """Who it is, for messages: with its line."""
    every: int
    key: KeyColumns
    columns: pa.Schema
    """Of a window's row: an epoch may bring none, and others wait."""
    state: str
    """The run's state folder."""

    def __call__(self, batches: Iterator[pa.RecordBatch], states: StateAccess) -> Iterator[pa.RecordBatch]:
        settle_in()
        return self.appearing(batches, states, present_epoch(Path(self.state)))

    def appearing(
        self, batches: Iterator[pa.RecordBatch], states: StateAccess, present: PresentEpoch
    ) -> Iterator[pa.RecordBatch]:
        """What appears in an epoch. `batches` are sorted by key, and have every window once."""
        moment = -(-present.epoch // self.every) * self.every
        """The epoch in which all that is waiting appears."""
        now = present.last or present.epoch == moment
        for batch in batches:
            rows = batch.cast(self.columns)
            runs = self.key.runs(rows) if rows.num_rows else iter(())
            while portion := list(islice(runs, KEYS_AT_ONCE)):
                waiting = states.load([run.key for run in portion])
                pairs = zip(portion, waiting, strict=True)
                if now:
                    states.save([Change(run.key, None, strike=moment) for run, before in pairs if before])
                else:
                    states.save([self._waits(run, rows, None if before else moment) for run, before in pairs])
            if now:
                yield rows
        for due in states.due(moment) if now else ():
            for first in range(0, len(due), KEYS_AT_ONCE):
                yield self._let_go([key for key, _ in due[first : first + KEYS_AT_ONCE]], states, moment)

    def _waits(self, run: Run, rows: pa.RecordBatch, moment: int | None) -> Change:
        return Change(run.key, encode_rows(rows.slice(run.first, 1)), moment)

    def _let_go(self, keys: list[Key], states: StateAccess, moment: int) -> pa.RecordBatch:
        waiting = states.load(keys)
        states.save([Change(key, None, strike=moment) for key in keys])
        with told_of_other_columns(self.operator):
            return pa.concat_batches([decode_rows(encoded, self.columns) for encoded in waiting if encoded])
