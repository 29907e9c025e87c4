"""What must come of each job, and what a contestant wrote instead. Reads files, decides without them."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
from peers_jobs.work import AMOUNTS, LETTERS, STEP, USERS, word

Key = tuple[str, ...]
Numbers = npt.NDArray[np.int64]

_CHANGE = re.compile(r"([+-][IUD])\[(.*)\]")
"""A row of a stream of changes, as Flink writes it."""


@dataclass(frozen=True)
class Answer:
    """How far the rows are from what they should be."""

    lost: int = 0
    """Tuples that are in no result."""
    doubled: int = 0
    """Tuples that are in a result once too often."""
    wrong: int = 0
    """Rows that should not be there, or hold something else."""

    @property
    def right(self) -> bool:
        return self == Answer()

    def __str__(self) -> str:
        said = (("lost", self.lost), ("doubled", self.doubled), ("wrong", self.wrong))
        return ", ".join(f"{count:,} {what}" for what, count in said if count) or "right"


def check_numbers(numbers: Numbers, tuples: int) -> Answer:
    """Every number from 0 to `tuples` must be there once."""
    inside = numbers[(numbers >= 0) & (numbers < tuples)]
    times = np.bincount(inside, minlength=tuples)
    return Answer(int((times == 0).sum()), int((times[times > 1] - 1).sum()), len(numbers) - len(inside))


def check_totals(numbers: Numbers, totals: Numbers, tuples: int) -> Answer:
    """Every number must be there once, with what the function makes of its user and its amount."""
    answer = check_numbers(numbers, tuples)
    due = numbers * STEP % USERS * 100 + numbers % AMOUNTS
    return Answer(answer.lost, answer.doubled, answer.wrong + int((totals != due).sum()))


def check_counts(found: Mapping[Key, int], due: Mapping[Key, int]) -> Answer:
    """Every key must have its count, and no other key may be there."""
    return Answer(
        lost=sum(max(count - found.get(key, 0), 0) for key, count in due.items()),
        doubled=sum(max(found.get(key, 0) - count, 0) for key, count in due.items()),
        wrong=sum(key not in due for key in found),
    )


def words_due(tuples: int) -> dict[Key, int]:
    """How often each word is among so many tuples."""
    whole, rest = divmod(tuples, len(LETTERS))
    return {(word(number),): whole + (number < rest) for number in range(len(LETTERS)) if whole or number < rest}


def counted_row(line: str) -> tuple[Key, int] | None:
    """The key and its count that a line tells, whoever wrote it: CSV, JSON, or `+U[key, count]`.

    None for what takes an earlier row back.
    """
    if line.startswith("{"):
        row = json.loads(line)
        count, diff = row.pop("count"), row.pop("diff", 1)
        row.pop("time", None)
        return (tuple(row.values()), count) if diff > 0 else None
    change = _CHANGE.fullmatch(line)
    if change is not None:
        *key, last = change[2].split(", ")
        return None if change[1] in ("-U", "-D") else (tuple(key), int(last))
    *key, last = next(csv.reader([line]))
    return tuple(key), int(last)


def last_counts(rows: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """What each key came to: counts only grow."""
    counts: dict[Key, int] = {}
    for key, count in rows:
        counts[key] = max(count, counts.get(key, 0))
    return counts


def repeated_rows(rows: Iterable[tuple[Key, int]]) -> int:
    """How many rows say what another row has said already."""
    return sum(times - 1 for times in Counter(rows).values())


def visible_files(folder: Path) -> list[Path]:
    """The files of a result: neither hidden nor anybody's own notes."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if not _is_private(path.relative_to(folder)))


def _is_private(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def counted_rows(folder: Path) -> Iterator[tuple[Key, int]]:
    """The rows in a folder; a last line that is still being written is left for later."""
    for path in visible_files(folder):
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                row = counted_row(line.rstrip("\r\n")) if line.endswith("\n") else None
                if row is not None:
                    yield row


def columns_of(folder: Path, count: int) -> list[Numbers]:
    """The first so many columns of CSV files, as numbers; a line of names is passed over, further columns too."""
    tables = [_columns(path, count) for path in visible_files(folder) if path.stat().st_size]
    return [np.concatenate([np.empty(0, np.int64), *(table[place] for table in tables)]) for place in range(count)]


def _columns(path: Path, count: int) -> list[Numbers]:
    with path.open("rb") as file:
        first = file.readline()
    names = [f"f{place}" for place in range(first.count(b",") + 1)]
    options = pa_csv.ReadOptions(column_names=names, skip_rows=0 if first[:1].isdigit() else 1)
    kept = pa_csv.ConvertOptions(include_columns=names[:count], column_types={name: pa.int64() for name in names})
    table = pa_csv.read_csv(path, options, convert_options=kept)
    return [table.column(place).to_numpy() for place in range(count)]


def answer_of(job: str, out: Path, tuples: int, counts: Mapping[Key, int]) -> Answer:
    """What a contestant's rows are worth; `counts` are those that the JSON lines must come to."""
    if job == "stateless":
        return check_numbers(columns_of(out, 1)[0], tuples)
    if job in ("function", "batch-function"):
        numbers, totals = columns_of(out, 2)
        return check_totals(numbers, totals, tuples)
    return check_counts(last_counts(counted_rows(out)), counts if job == "json" else words_due(tuples))
