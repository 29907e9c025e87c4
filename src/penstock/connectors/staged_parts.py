"""Rows that wait for their commit in a staging folder, a file for each part."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from penstock.connectors.base import Staged


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
