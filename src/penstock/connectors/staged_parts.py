"""Rows that wait for their commit in a staging folder, a file for each part."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from penstock.connectors.base import Staged

_STALE_SECONDS = 3600.0
"""Parts live for seconds: what is so old was left behind by one that was killed."""


def new_part(folder: Path, run: str, suffix: str = "") -> Path:
    """A name that nobody has had before, and that says whose it is."""
    return folder / (f"{run}-{uuid.uuid4().hex}{suffix}" if run else f"{uuid.uuid4().hex}{suffix}")


def clear_leftovers(files: Iterable[Path], run: str, fresh: bool) -> None:
    """Remove what was staged and never committed by one that is dead: all that is old, and what `run` itself had, of
    which there is never more than one.

    A sibling replica may be at work with the rest, unless the run is fresh.
    """
    stale = time.time() - _STALE_SECONDS
    for each in files:
        with suppress(FileNotFoundError):
            if each.is_file() and (fresh or (run and _run_of(each) == run) or each.stat().st_mtime < stale):
                each.unlink()


def _run_of(part: Path) -> str:
    return part.name.rpartition("-")[0]


def discard_parts(staged: Iterable[Staged]) -> None:
    """Remove the files of staged rows; those that are gone already are no matter."""
    for each in staged:
        if "part" in each.detail:
            Path(each.detail["part"]).unlink(missing_ok=True)


def leave_staging(folder: Path) -> None:
    """Remove a sink's staging folder, and the one it lies in, unless there are rows left in them."""
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()
