"""The dataflow that both processes of Bytewax's run; the work is in the environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.files import DirSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from work import AMOUNTS, LETTERS, PARALLELISM, STEP, USERS, read_work, word

WORK = read_work(os.environ["PEER_WORK"])
BATCH = USERS
"""How many tuples the source hands over at once; the users repeat after so many."""
TICKS_PER_SECOND = 10
"""How often a source with a pace hands tuples over."""
READ_BYTES = 1 << 17

# The tuples repeat, and are made once, so that making them costs next to nothing.
WORDS = [word(number) for number in range(len(LETTERS))] * (BATCH // len(LETTERS) + 2)
PAYERS = [number * STEP % USERS for number in range(BATCH)]
PAID = [number % AMOUNTS for number in range(BATCH)]


def stretch(part: int) -> tuple[int, int]:
    """The numbers of a part: whole batches, so that each begins with the first user. The last takes the rest."""
    first, end = (WORK.tuples * each // PARALLELISM // BATCH * BATCH for each in (part, part + 1))
    return first, WORK.tuples if part + 1 == PARALLELISM else end


class Numbers(StatefulSourcePartition[Any, int]):
    """A stretch of the numbers, as the tuples of the job; goes on from where it was."""

    def __init__(self, part: int, at: int | None) -> None:
        first, self._end = stretch(part)
        self._at = first if at is None else at
        self._due: datetime | None = None

    def next_batch(self) -> Iterable[Any]:
        if self._at >= self._end:
            raise StopIteration
        first, self._at = self._at, min(self._at + self._batch(), self._end)
        count = self._at - first
        letter = first % len(LETTERS)
        words = WORDS[letter : letter + count]
        if WORK.job in ("word-count", "recovery"):
            return words
        if WORK.job == "stateless":
            return list(zip(range(first, self._at), words, strict=True))
        return list(zip(range(first, self._at), PAYERS[:count], PAID[:count], strict=True))

    def _batch(self) -> int:
        if WORK.rate is None:
            return BATCH
        self._due = (self._due or datetime.now(UTC)) + timedelta(seconds=1 / TICKS_PER_SECOND)
        return WORK.rate // PARALLELISM // TICKS_PER_SECOND

    def next_awake(self) -> datetime | None:
        return self._due

    def snapshot(self) -> int:
        return self._at


class Lines(StatefulSourcePartition[bytes, int]):
    """The lines of one file."""

    def __init__(self, file: Path, at: int | None) -> None:
        self._file = file.open("rb", buffering=1 << 20)
        self._file.seek(at or 0)

    def next_batch(self) -> Iterable[bytes]:
        lines = self._file.readlines(READ_BYTES)
        if not lines:
            raise StopIteration
        return lines

    def snapshot(self) -> int:
        return self._file.tell()


class Source(FixedPartitionedSource[Any, int]):
    """Two stretches of numbers, or the files of a folder."""

    def list_parts(self) -> list[str]:
        if WORK.input is not None:
            return sorted(file.name for file in WORK.input.iterdir())
        return [str(part) for part in range(PARALLELISM)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Any:
        opened = WORK.folder / f"opened-{os.getpid()}-{for_part}"
        opened.write_text(str(time.monotonic()))
        if WORK.input is not None:
            return Lines(WORK.input / for_part, resume_state)
        return Numbers(int(for_part), resume_state)


class FileOfWorker(StatelessSinkPartition[str]):
    """What one worker writes."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", buffering=1 << 20)

    def write_batch(self, items: list[str]) -> None:
        self._file.writelines(items)

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class FilesOfWorkers(DynamicSink[str]):
    """A file for each worker, so that no tuple has to go to the other."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> FileOfWorker:
        return FileOfWorker(WORK.out / f"rows-{worker_index}.csv")


class Count(StatefulBatchLogic[None, int, int]):
    """Counts the tuples of a key. Tells it in the end, or again and again where somebody watches."""

    def __init__(self, count: int | None) -> None:
        self._count = count or 0
        self._watched = WORK.job == "recovery"

    def on_batch(self, values: list[None]) -> tuple[list[int], bool]:
        self._count += len(values)
        return ([self._count] if self._watched else []), StatefulBatchLogic.RETAIN

    def on_eof(self) -> tuple[list[int], bool]:
        return ([] if self._watched else [self._count]), StatefulBatchLogic.RETAIN

    def snapshot(self) -> int:
        return self._count


def sold(line: bytes) -> list[tuple[str, None]]:
    event = json.loads(line)
    if event["price"] <= 10:
        return []
    event["gross"] = event["price"] * 1.23
    return [(f"{event['user']},{event['kind'].upper()}", None)]


def total(payment: tuple[int, int, int]) -> str:
    number, user, amount = payment
    return f"{number},{user * 100 + amount}\n"


flow = Dataflow("peer")
tuples = op.input("in", flow, Source())
if WORK.job == "stateless":
    kept = op.filter("second", op.filter("first", tuples, lambda one: len(one[1]) > 0), lambda one: one[1] != "")
    op.output("out", op.map("final", kept, lambda one: f"{one[0]}\n"), FilesOfWorkers())
elif WORK.job == "function":
    op.output("out", op.map("total", tuples, total), FilesOfWorkers())
else:
    keyed = op.flat_map("sold", tuples, sold) if WORK.job == "json" else op.map("word", tuples, lambda one: (one, None))
    counts = op.stateful_batch("count", keyed, Count)
    lines = op.map("line", counts, lambda one: (one[0], f"{one[0]},{one[1]}"))
    op.output("out", lines, DirSink(WORK.out, PARALLELISM))
