"""Number tuples as they are read; and pick out those that are replayed, or leave out those that are postponed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Chunk, Slice, SourceConnector
from penstock.epochs.postponed import Replay

SEQUENCE = "__seq"
"""The hidden column that orders tuples and says which source tuple they come from; see `epochs.sequence`."""

TIMESTAMP = pa.timestamp("us", "UTC")

TIME = "__time"
"""The hidden column with the time of the epoch, which tuples have where a window asks for it."""

MARK = "__mark"
"""The hidden column with the watermark by which tuples of the epoch are late, in milliseconds since 1970; they have it
where a window asks for it."""

CARRIED = (TIME, MARK)
"""Hidden columns that are the same for all tuples of an epoch."""

HIDDEN = (SEQUENCE, *CARRIED)
"""The columns of ours that accompany the tuples between operators."""

Picks = Mapping[int, int]
"""By the position of a tuple in the epoch where it was first read, the sequence it has when it is replayed."""


def numbered(chunk: Chunk, first: int) -> pa.RecordBatch:
    """The chunk's tuples with their sequences, which begin with `first`."""
    rows = chunk.rows
    return _with_sequences(rows, np.arange(first, first + rows.num_rows, dtype=np.int64))


def picked(chunk: Chunk, position: int, picks: Picks) -> pa.RecordBatch:
    """Those of the chunk's tuples that are replayed; the first of the chunk has `position`."""
    chosen = sorted(at for at in picks if position <= at < position + chunk.rows.num_rows)
    rows = chunk.rows.take(pa.array([at - position for at in chosen], pa.int64()))
    return _with_sequences(rows, np.array([picks[at] for at in chosen], dtype=np.int64))


def without(rows: pa.RecordBatch, sequences: pa.Array) -> pa.RecordBatch:
    """The tuples but those of these sequences."""
    if not len(sequences):
        return rows
    gone = pc.is_in(rows.column(SEQUENCE), value_set=sequences)
    return rows.filter(pc.invert(gone))


def timed(rows: pa.RecordBatch, time_ms: int, mark_ms: int | None = None) -> pa.RecordBatch:
    """The tuples with the time of their epoch, and with a watermark where there is one."""
    times = pa.array(np.full(rows.num_rows, time_ms * 1000, dtype=np.int64)).cast(TIMESTAMP)
    columns, names = [*rows.columns, times], [*rows.schema.names, TIME]
    if mark_ms is not None:
        columns, names = [*columns, pa.array(np.full(rows.num_rows, mark_ms, dtype=np.int64))], [*names, MARK]
    return pa.RecordBatch.from_arrays(columns, names=names)


def slices_to_replay(connector: SourceConnector, replays: Iterable[Replay]) -> list[tuple[Slice, Picks]]:
    """The slices of earlier epochs in which the tuples to be replayed stand, and which ones to pick from each."""
    by_origin: dict[int, list[Replay]] = {}
    for replay in replays:
        by_origin.setdefault(replay.late.origin.epoch, []).append(replay)
    found: list[tuple[Slice, Picks]] = []
    for of_epoch in by_origin.values():
        span = of_epoch[0].span
        slices = sorted(connector.slices(dict(span.begin), dict(span.end), span.slices), key=lambda part: part.first)
        starts = [part.first for part in slices]
        picks: dict[int, dict[int, int]] = {}
        for replay in of_epoch:
            position = replay.late.origin.position
            number = int(np.searchsorted(starts, position, side="right")) - 1
            picks.setdefault(number, {})[position] = replay.anchor.sequence
        found.extend((slices[number], chosen) for number, chosen in sorted(picks.items()))
    return found


def _with_sequences(rows: pa.RecordBatch, sequences: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*rows.columns, pa.array(sequences)], names=[*rows.schema.names, SEQUENCE])
