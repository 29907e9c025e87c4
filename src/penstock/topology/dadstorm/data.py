"""The data files that a DADSTORM configuration reads: where they are, and how wide their tuples."""

from __future__ import annotations

import re
from pathlib import Path

DATA_SUFFIXES = (".dat", ".data", ".csv", ".txt", "")
"""Endings under which a data file is looked for when it is not there as written, best first."""

_QUOTED_FIELD = re.compile(r'(^|,)\s*"(?:[^"]|"")*"')


def find_data_file(folder: Path, written: str) -> str | None:
    """The path, relative as written, of the file that is meant; None when there is none.

    A configuration that says `tweeters.data` or `.\\Tweeters.dat` is often shipped with `tweeters.dat`.
    """
    for path in dict.fromkeys((written, written.replace("\\", "/"))):
        if (folder / path).is_file():
            return path
    wanted = Path(written.replace("\\", "/"))
    beside = folder / wanted.parent
    if not beside.is_dir():
        return None
    alike = [file for file in beside.iterdir() if file.stem.lower() == wanted.stem.lower()
             and file.suffix.lower() in DATA_SUFFIXES and file.is_file()]
    nearest = min(alike, key=lambda file: (_distance(file, wanted), file.name), default=None)
    return None if nearest is None else (wanted.parent / nearest.name).as_posix()


def _distance(file: Path, wanted: Path) -> int:
    if file.name.lower() == wanted.name.lower():
        return -1
    return DATA_SUFFIXES.index(file.suffix.lower())


def data_files_in(folder: Path) -> list[str]:
    """The names of the files in `folder` that look like data, to suggest one of them."""
    if not folder.is_dir():
        return []
    return sorted(file.name for file in folder.iterdir() if file.suffix.lower() in DATA_SUFFIXES[:-1])


def count_fields(file: Path) -> int | None:
    """How many fields the first tuple has; None when there is no tuple. Raises OSError."""
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        for line in lines:
            tuple_text = line.strip()
            if tuple_text and not tuple_text.startswith("%"):
                return _QUOTED_FIELD.sub(r"\1", tuple_text).count(",") + 1
    return None
