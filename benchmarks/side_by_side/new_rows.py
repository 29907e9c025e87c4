"""The rows that have come to a folder since somebody looked last, without reading again what was read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from side_by_side.answers import Key, counted_row, visible_files


@dataclass(frozen=True)
class _Place:
    """How far a file was read, and what it was like then."""

    end: int = 0
    last_line: bytes = b""
    """The one that ends there."""
    seen: tuple[int, int, int] = (-1, -1, -1)
    """Its number in the file system, its size, and when it was written last."""


class NewRows:
    """Reads every line of a folder's files once.

    A file that somebody shortened or wrote anew is read from its beginning: its last line is not where it was.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[Path, _Place] = {}

    def look(self) -> Iterator[tuple[Key, int]]:
        """The rows of whole lines; a file that is gone or cannot be understood yet is left for the next look."""
        for path in visible_files(self._folder) if self._folder.exists() else ():
            before = self._places.get(path, _Place())
            try:
                lines, place = _read_on(path, before)
                rows = [counted_row(line.decode("utf-8").rstrip("\r\n")) for line in lines]
            except (FileNotFoundError, ValueError):
                continue
            self._places[path] = place
            yield from (row for row in rows if row is not None)


def _read_on(path: Path, before: _Place) -> tuple[list[bytes], _Place]:
    """The whole lines that are new, and how far the file is read with them."""
    found = path.stat()
    seen = (found.st_ino, found.st_size, found.st_mtime_ns)
    if seen == before.seen:
        return [], before
    with path.open("rb") as file:
        start = before.end if found.st_size > before.end and _is_as_it_was(file.fileno(), before) else 0
        file.seek(start)
        # Not what is written meanwhile: the next look would take the file for one that was written anew.
        text = file.read(found.st_size - start)
    lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
    last_line = lines[-1] if lines else before.last_line if start else b""
    return lines, _Place(start + sum(map(len, lines)), last_line, seen)


def _is_as_it_was(file: int, before: _Place) -> bool:
    return os.pread(file, len(before.last_line), before.end - len(before.last_line)) == before.last_line
