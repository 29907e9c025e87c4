"""Files as a source sees them: which there are, how far each goes, and where records begin in it."""

from __future__ import annotations

import abc
import glob
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np

from penstock.connectors.base import Place
from penstock.errors import ConnectorError

_CHUNK = 1 << 20
_SIMILAR = (".csv", ".dat", ".data", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", "")


@dataclass(frozen=True)
class Mark:
    """A place between two records: a byte (in Parquet a row), and the lines (rows) before it."""

    at: int
    line: int


class TrackedFile(abc.ABC):
    """A file that only grows, read record by record from any mark."""

    weight: ClassVar[int]
    """Roughly how many bytes one step of a mark stands for."""

    @abc.abstractmethod
    def size(self) -> int:
        """Its end now, in bytes or rows."""

    @abc.abstractmethod
    def beginning(self, whole_lines: bool) -> Mark | None:
        """The mark before its first record; None while that cannot be told."""

    @abc.abstractmethod
    def advance(self, mark: Mark, limit: int, whole_lines: bool) -> Mark:
        """The mark at most `limit` records further; the same where there are none."""

    @abc.abstractmethod
    def split(self, begin: Mark, at: int, end: int) -> Mark:
        """The first mark at or after `at`, at most `end`; lines are counted on from `begin`."""


@dataclass(frozen=True)
class LineFile(TrackedFile):
    """A file of lines, the first of which may be a header. Every physical line counts as a record."""

    name: str
    path: Path
    header: bool = False
    weight: ClassVar[int] = 1

    def size(self) -> int:
        with reading(self.name, self.path):
            return self.path.stat().st_size

    def beginning(self, whole_lines: bool) -> Mark | None:
        if not self.header:
            return Mark(0, 0)
        line = self.header_line()
        return Mark(len(line), 1) if line.endswith(b"\n") or (line and not whole_lines) else None

    def header_line(self) -> bytes:
        with reading(self.name, self.path), self.path.open("rb") as file:
            return file.readline()

    def advance(self, mark: Mark, limit: int, whole_lines: bool) -> Mark:
        with reading(self.name, self.path), self.path.open("rb") as file:
            return _advance(file, mark, limit, self.size(), whole_lines)

    def split(self, begin: Mark, at: int, end: int) -> Mark:
        with reading(self.name, self.path), self.path.open("rb") as file:
            boundary = _next_line(file, at, end)
            lines = sum(chunk.count(b"\n") for chunk in _chunks(file, begin.at, boundary))
        return Mark(boundary, begin.line + lines)


def _advance(file: BinaryIO, mark: Mark, limit: int, size: int, whole_lines: bool) -> Mark:
    position, end, lines = mark.at, mark.at, 0
    for chunk in _chunks(file, mark.at, size):
        found = chunk.count(b"\n")
        if lines + found >= limit:
            newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
            return Mark(position + int(newlines[limit - lines - 1]) + 1, mark.line + limit)
        if found:
            end = position + chunk.rfind(b"\n") + 1
        lines += found
        position += len(chunk)
    if position > end and not whole_lines:
        return Mark(position, mark.line + lines + 1)
    return Mark(end, mark.line + lines)


def _next_line(file: BinaryIO, at: int, end: int) -> int:
    position = max(at - 1, 0)
    for chunk in _chunks(file, position, end):
        newline = chunk.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        position += len(chunk)
    return end


def _chunks(file: BinaryIO, begin: int, end: int, size: int = _CHUNK) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (chunk := file.read(min(size, end - begin))):
        yield chunk
        begin += len(chunk)


def line_blocks(name: str, path: Path, begin: int, end: int, size: int) -> Iterator[bytes]:
    """The bytes from `begin` to `end` in blocks of whole lines, of about `size` or of one longer line."""
    with reading(name, path), path.open("rb") as file:
        pending: list[bytes] = []
        position = begin
        for chunk in _chunks(file, begin, end, size):
            position += len(chunk)
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield b"".join((*pending, chunk[:cut]))
                pending = []
            pending.append(chunk[cut:])
        if position < end:
            raise ConnectorError(shrunk(name, path, end, position))
        if rest := b"".join(pending):
            yield rest


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


def shrunk(name: str, path: Path, wanted: int, size: int) -> str:
    return (
        f"{name}: {path} shrank: it was read up to {wanted} and now ends at {size}; "
        "restore it, or start afresh without the earlier state"
    )


@contextmanager
def reading(name: str, path: Path) -> Iterator[None]:
    """Turns what the operating system says into a ConnectorError about this file."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(f"{name}: {path} disappeared; restore it, or start afresh") from error
    except OSError as error:
        said = error.strerror or error
        raise ConnectorError(f"{name}: cannot read {path}: {said}; check what it is and who may read it") from error
