"""Files as a source sees them: which there are, what is asked of each, and what can be wrong with it."""

from __future__ import annotations

import abc
import glob
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from penstock.connectors.base import Place
from penstock.errors import ConnectorError

_HEAD, _TAIL = 4096, 1024
_WAY_OUT = "put it back as it was and start again, or start anew with --fresh"
_SIMILAR = (".csv", ".dat", ".data", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", "")


@dataclass(frozen=True)
class Mark:
    """A place between two records: a byte (in Parquet a row), and the lines (rows) before it."""

    at: int
    line: int
    skipped: int = 0
    """How many of the lines are no records: headers, blank lines, comments."""

    @property
    def records(self) -> int:
        return self.line - self.skipped


class TrackedFile(abc.ABC):
    """A file that only grows, read record by record from any mark."""

    weight: ClassVar[int]
    """Roughly how many bytes one step of a mark stands for."""

    @abc.abstractmethod
    def size(self) -> int:
        """Its end now, in bytes or rows."""

    @abc.abstractmethod
    def fingerprint(self, at: int) -> str:
        """A short digest of some of what lies before `at`: another one when the file is not what it was."""

    @abc.abstractmethod
    def beginning(self, whole_lines: bool) -> Mark | None:
        """The mark before its first record; None while that cannot be told."""

    @abc.abstractmethod
    def advance(self, mark: Mark, limit: int, whole_lines: bool) -> Mark:
        """The mark at most `limit` records further; the same where there is nothing more."""

    @abc.abstractmethod
    def split(self, begin: Mark, at: int, end: int) -> Mark:
        """The first mark at or after `at`, at most `end`; lines are counted on from `begin`."""


def list_files(place: Place, pattern: str, follow: bool) -> dict[str, Path]:
    """The files that a path, a glob or a directory stands for, sorted by name.

    The keys are relative to the topology's folder where they can be. Raises ConnectorError when there
    is none; with `follow`, a directory or a glob may still be empty.
    """
    path = place.resolve(pattern)
    with reading(place.name, path):
        if path.is_dir():
            found = [child for child in path.iterdir() if child.is_file() and child.name[0] not in "._"]
            missing = f"{place.name}: no files in the directory {path}; put some there, or write follow: true"
        elif path.exists():
            return {_key(place, path): path}
        elif glob.has_magic(pattern):
            found = _matches(place, pattern)
            missing = f"{place.name}: no file matches {path}; correct the pattern, or write follow: true"
        else:
            raise ConnectorError(f"{place.name}: no file {path}; {_advice(place, path)}")
    if not found and not follow:
        raise ConnectorError(missing)
    return {_key(place, match): match for match in sorted(found)}


def _matches(place: Place, pattern: str) -> list[Path]:
    wanted = Path(pattern).expanduser()
    base = Path(wanted.anchor) if wanted.is_absolute() else place.folder.absolute()
    relative = wanted.relative_to(wanted.anchor) if wanted.is_absolute() else wanted
    return [match for match in base.glob(str(relative)) if match.is_file()]


def _key(place: Place, path: Path) -> str:
    folder = place.folder.absolute()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def _advice(place: Place, path: Path) -> str:
    beside = (path.with_suffix(suffix) for suffix in _SIMILAR)
    similar = next((other for other in beside if other != path and other.is_file()), None)
    if similar is not None:
        return f"did you mean {similar.name}, which is beside it?"
    return f"paths are relative to {place.folder.absolute()}"


def digest_of_ends(name: str, path: Path, begin: int, end: int) -> str:
    """A short digest of the first and the last bytes between `begin` and `end`."""
    length = end - begin
    with reading(name, path), path.open("rb", 0) as file:
        head = os.pread(file.fileno(), min(length, _HEAD), begin)
        tail = os.pread(file.fileno(), min(length, _TAIL), max(end - _TAIL, begin))
    return hashlib.blake2b(head + tail, digest_size=8).hexdigest()


def shrunk(name: str, path: Path, wanted: int, size: int) -> str:
    return f"{name}: {path} shrank: it was read up to {wanted} and now ends at {size}; {_WAY_OUT}"


def replaced(name: str, path: Path, read: int) -> str:
    return f"{name}: {path} was replaced: what is in it up to {read} is not what was read there; {_WAY_OUT}"


def gone(name: str, path: Path) -> str:
    return f"{name}: {path} disappeared; {_WAY_OUT}"


@contextmanager
def reading(name: str, path: Path) -> Iterator[None]:
    """Turns what the operating system says into a ConnectorError about this file."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(gone(name, path)) from error
    except OSError as error:
        said = error.strerror or error
        raise ConnectorError(f"{name}: cannot read {path}: {said}; check what it is and who may read it") from error
