"""Put the tuples of each key together by number, on a worker: those of a full window leave, the others are remembered.

However many tuples a key has in an epoch, what is remembered of it is asked for once and written once; and whole Arrow
batches are moved, never single tuples.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.spark.key_columns import KeyColumns, Run
from penstock.spark.keyed_state import KEYS_AT_ONCE
from penstock.spark.late_watermark import late_watermark_of_task
from penstock.spark.numbering import MARK, TIME, timed
from penstock.spark.present_epoch import present_epoch
from penstock.spark.remembered_rows import decode_rows, encode_rows, told_of_other_columns
from penstock.spark.state_access import Change, StateAccess
from penstock.spark.worker_process import settle_in

FIRST = "__first"
"""The number of a window's first tuple among those of its key, from 1."""
PLACE = "__place"
"""The place of a tuple in its window, from 0."""

_READ = struct.Struct(">Q")
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Pending:
    """What is remembered of a key: how many of its tuples have been read, and those that a window still needs."""

    read: int
    rows: pa.RecordBatch

    def encoded(self) -> bytes:
        return _READ.pack(self.read) + encode_rows(self.rows)

    @classmethod
    def decoded(cls, encoded: bytes | None, schema: pa.Schema) -> Pending:
        """Raises ValueError when the tuples had other columns."""
        if encoded is None:
            return cls(0, pa.RecordBatch.from_pylist([], schema))
        return cls(_READ.unpack_from(encoded)[0], decode_rows(encoded[_READ.size :], schema))


def tuples_read(encoded: bytes) -> int:
    """How many tuples of a key have been read, from what is remembered of it."""
    number: int = _READ.unpack_from(encoded)[0]
    return number


@dataclass(frozen=True)
class CountingStage:
    """Everything a worker needs to put together the tuples of one operator."""

    operator: str
    """Who it is, for messages: with its line."""
    length: int
    step: int
    key: KeyColumns
    carried: tuple[str, ...]
    """Which of the epoch's own columns accompany the tuples."""
    state: str
    """The run's state folder."""

    def __call__(self, batches: Iterator[pa.RecordBatch], states: StateAccess) -> Iterator[pa.RecordBatch]:
        settle_in()
        state = Path(self.state)
        time = present_epoch(state).time_ms if TIME in self.carried else 0
        mark = late_watermark_of_task(state) if MARK in self.carried else None
        for batch in self.full_windows(batches, states):
            yield timed(batch, time, mark) if self.carried else batch

    def full_windows(self, batches: Iterator[pa.RecordBatch], states: StateAccess) -> Iterator[pa.RecordBatch]:
        """The tuples of the windows that become full, window by window, with the columns `FIRST` and `PLACE`.

        Batches must be sorted by key, and each key's tuples by their order. A key may go on in the next batch.
        """
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = batch.drop_columns(list(self.carried)) if self.carried else batch
            runs = self.key.runs(rows)
            while portion := list(islice(runs, KEYS_AT_ONCE)):
                yield from self._counted(rows, portion, states)

    def _counted(self, rows: pa.RecordBatch, runs: Sequence[Run], states: StateAccess) -> Iterator[pa.RecordBatch]:
        before = [self._pending(encoded, rows.schema) for encoded in states.load([run.key for run in runs])]
        parts: list[pa.RecordBatch] = []
        starts: list[np.ndarray] = []
        """Where the full windows of each key begin, in all parts together."""
        firsts: list[np.ndarray] = []
        changes: list[Change] = []
        offset = 0
        for run, pending in zip(runs, before, strict=True):
            new = rows.slice(run.first, run.end - run.first)
            read = pending.read + new.num_rows
            windows = full_between(pending.read, read, self.length, self.step)
            held = pending.rows.num_rows
            # The first tuple that is held is that number of its key, from 0.
            begin = pending.read - held
            if len(windows):
                starts.append(windows - begin + offset)
                firsts.append(windows + 1)
            keep_from = next_window(read, self.length, self.step)
            changes.append(Change(run.key, self._left(pending, new, keep_from - begin, read).encoded()))
            parts += (pending.rows, new)
            offset += held + new.num_rows
        states.save(changes)
        if starts:
            yield from self._emitted(pa.concat_batches(parts), np.concatenate(starts), np.concatenate(firsts))

    def _left(self, pending: Pending, new: pa.RecordBatch, drop: int, read: int) -> Pending:
        """What to remember when the first `drop` of the tuples held and new are needed no more."""
        held = pending.rows.num_rows
        return Pending(read, pa.concat_batches([pending.rows.slice(min(drop, held)), new.slice(max(drop - held, 0))]))

    def _emitted(self, rows: pa.RecordBatch, starts: np.ndarray, firsts: np.ndarray) -> Iterator[pa.RecordBatch]:
        places = np.arange(self.length, dtype=np.int64)
        at_once = max(_ROWS_AT_ONCE // self.length, 1)
        for begin in range(0, len(starts), at_once):
            chosen = starts[begin : begin + at_once]
            taken = rows.take(pa.array((chosen[:, None] + places).ravel()))
            numbers = pa.array(np.repeat(firsts[begin : begin + at_once], self.length))
            yield pa.RecordBatch.from_arrays(
                [*taken.columns, numbers, pa.array(np.tile(places, len(chosen)))],
                names=[*taken.schema.names, FIRST, PLACE],
            )

    def _pending(self, encoded: bytes | None, schema: pa.Schema) -> Pending:
        with told_of_other_columns(self.operator):
            return Pending.decoded(encoded, schema)


def full_between(before: int, now: int, length: int, step: int) -> np.ndarray:
    """The windows that become full when the number of tuples goes from `before` to `now`: by the number, from 0, of
    their first tuple."""
    return np.arange(next_window(before, length, step), now - length + 1, step, dtype=np.int64)


def next_window(read: int, length: int, step: int) -> int:
    """The number, from 0, of the first tuple of the first window that is not full with so many tuples."""
    return 0 if read < length else ((read - length) // step + 1) * step
