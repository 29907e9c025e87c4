"""Look after Spark's checkpoint before a start: what a crash, or a damaged disk, left half written.

The epoch log is the truth about epochs. So an entry of Spark's own logs that cannot be read may simply go: Spark asks
again, and is told the same epoch. State that cannot be read is computed again in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from penstock.epochs.record import EpochRecord
from penstock.spark.epoch_source import offset_epoch

_LOGS = {"offsets": 3, "commits": 2}
"""How many lines an entry has at least: a version, a line of Spark's own, and an offset for each source."""

_STATE_FILE = re.compile(r"(\d+)(?:_[^.]*)?\.(?:delta|changelog|zip|snapshot)")
"""A file of one version of the state."""


def newest_epoch(checkpoint: Path) -> EpochRecord | None:
    """The epoch that Spark has last begun; None when there is none."""
    entries = _entries(checkpoint / "offsets")
    return offset_epoch(entries[-1].read_text().splitlines()[2])[1] if entries else None


def mend(checkpoint: Path, say: Callable[[str], None]) -> None:
    """Remove unreadable newest entries of the offset log and the commit log, and commits without their offsets."""
    for log, fewest_lines in _LOGS.items():
        entries = _entries(checkpoint / log)
        while entries and not _is_readable(entries[-1], fewest_lines):
            say(f"{entries[-1]} is damaged: that epoch is done again from the epoch log")
            entries.pop().unlink()
    logged = _entries(checkpoint / "offsets")
    newest = int(logged[-1].name) if logged else -1
    for commit in _entries(checkpoint / "commits"):
        if int(commit.name) > newest:
            commit.unlink()


def rewind(checkpoint: Path) -> int | None:
    """Forget the last committed micro-batch and all that it wrote, so that it is done again from the epoch log.

    For state that cannot be read: what its epoch wrote is thrown away, and computed again from the state before.
    Returns the epoch that is done again; None when there is nothing to go back to.
    """
    commits = _entries(checkpoint / "commits")
    if not commits:
        return None
    again = int(commits[-1].name)
    record = next(entry for entry in _entries(checkpoint / "offsets") if int(entry.name) == again)
    epoch = offset_epoch(record.read_text().splitlines()[2])[0]
    commits[-1].unlink()
    for entry in _entries(checkpoint / "offsets"):
        if int(entry.name) > again:
            entry.unlink()
    for file in (checkpoint / "state").rglob("*"):
        version = _STATE_FILE.fullmatch(file.name)
        # The state after micro-batch n is version n + 1.
        if version is not None and int(version[1]) > again:
            file.unlink()
    return epoch


def _entries(folder: Path) -> list[Path]:
    """The entries of a log, oldest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def _is_readable(entry: Path, fewest_lines: int) -> bool:
    try:
        version, *lines = entry.read_text().splitlines()
        for line in lines:
            json.loads(line)
    except ValueError:
        return False
    return version.startswith("v") and 1 + len(lines) >= fewest_lines
