"""Files of JSON lines for the realistic job, and what must come of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jobs.make_events import BLOCK, block

_BLOCKS = 5
"""So many different ones, repeated: making every line anew would take longer than the benchmark."""
_FILE_MEGABYTES = 50
_FEWEST_FILES = 4
_FEW_PART = 4
"""One in so many files is read to warm up."""


@dataclass(frozen=True)
class Events:
    """A folder of files, and beside it one with a few of them."""

    folder: Path
    lines: int
    bytes: int
    counts: dict[tuple[str, ...], int]
    """How many lines of each user and kind pass the filter."""


def write_events(folder: Path, megabytes: int) -> Events:
    """About so many megabytes, the same every time."""
    every, few = folder / "all", folder / "few"
    every.mkdir(parents=True)
    few.mkdir()
    blocks = [block(seed) for seed in range(_BLOCKS)]
    files = max(_FEWEST_FILES, megabytes // _FILE_MEGABYTES)
    turns = [0] * _BLOCKS
    written = 0
    for number in range(files):
        path = every / f"events-{number:04}.jsonl"
        with path.open("wb") as file:
            while written < megabytes * 1_000_000 * (number + 1) // files:
                turn = sum(turns) % _BLOCKS
                written += file.write(blocks[turn])
                turns[turn] += 1
        if number < max(files // _FEW_PART, 1):
            (few / path.name).hardlink_to(path)
    counts: Counter[tuple[str, ...]] = Counter()
    for each, times in zip(blocks, turns, strict=True):
        for key, count in passing(each.splitlines()).items():
            counts[key] += count * times
    return Events(every, sum(turns) * BLOCK, written, {key: count for key, count in counts.items() if count})


def passing(lines: Iterable[bytes]) -> Counter[tuple[str, ...]]:
    """The lines that pass the filter, by user and kind."""
    events = map(json.loads, lines)
    return Counter((event["user"], event["kind"].upper()) for event in events if event["price"] > 10)
