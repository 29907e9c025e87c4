"""A file of lines: where records begin in it, how many there are, and whether it is still the file that was read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from penstock.connectors.records.files import Mark, TrackedFile, digest_of_ends, reading, shrunk
from penstock.connectors.records.lines import BOM
from penstock.connectors.records.skipping import NEWLINE, Skipping, line_begins
from penstock.errors import ConnectorError

_CHUNK = 1 << 17
"""Small enough that what is computed of a chunk stays in the processor's cache."""


@dataclass(frozen=True)
class LineFile(TrackedFile):
    """A file of lines, the first of which may be a header. Every other line that is not skipped is a record."""

    name: str
    path: Path
    header: bool = False
    skipping: Skipping = Skipping()
    weight: ClassVar[int] = 1

    def size(self) -> int:
        with reading(self.name, self.path):
            return self.path.stat().st_size

    def fingerprint(self, at: int) -> str:
        return digest_of_ends(self.name, self.path, 0, at)

    def beginning(self, whole_lines: bool) -> Mark | None:
        if not self.header:
            return Mark(0, 0)
        line = self.header_line()
        return Mark(len(line), 1, 1) if line.endswith(b"\n") or (line and not whole_lines) else None

    def header_line(self) -> bytes:
        with reading(self.name, self.path), self.path.open("rb") as file:
            return file.readline()

    def advance(self, mark: Mark, limit: int, whole_lines: bool) -> Mark:
        with self._opened() as handle:
            return self._advance(handle, mark, self.size(), limit, whole_lines)

    def split(self, begin: Mark, at: int, end: int) -> Mark:
        with self._opened() as handle:
            return self._advance(handle, begin, _next_line(handle, at, end), sys.maxsize, whole_lines=False)

    def _advance(self, handle: int, mark: Mark, end: int, limit: int, whole_lines: bool) -> Mark:
        wanted = mark.records + limit
        mark = replace(mark, at=_after_bom(handle, mark.at))
        for block in _blocks(handle, mark.at, end):
            if mark.records == wanted or (whole_lines and not block.is_whole):
                break
            mark = self._within(block, mark, wanted - mark.records)
        return mark

    def _within(self, block: _Block, mark: Mark, limit: int) -> Mark:
        """The mark before the record after the next `limit` ones, or at the end of the block."""
        text = np.frombuffer(block.data, dtype=np.uint8, count=block.length)
        begins = line_begins(text)
        skipped = self.skipping.among(block.data, text, begins)
        if len(begins) - len(skipped) <= limit:
            return Mark(mark.at + block.length, mark.line + len(begins), mark.skipped + len(skipped))
        records = np.delete(np.arange(len(begins)), np.searchsorted(begins, skipped))
        before = int(records[limit])
        return Mark(mark.at + int(begins[before]), mark.line + before, mark.skipped + before - limit)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        with reading(self.name, self.path), self.path.open("rb", 0) as file:
            yield file.fileno()


@dataclass(frozen=True)
class _Block:
    """Some lines: the first `length` bytes of `data`. Only the file's last line may lack its newline."""

    data: bytes
    length: int

    @property
    def is_whole(self) -> bool:
        return self.data[self.length - 1] == NEWLINE


def _blocks(handle: int, begin: int, end: int) -> Iterator[_Block]:
    while begin < end:
        data = os.pread(handle, min(_CHUNK, end - begin), begin)
        length = data.rfind(b"\n") + 1
        while not length and (more := os.pread(handle, min(len(data), end - begin - len(data)), begin + len(data))):
            newline = more.rfind(b"\n")
            length = len(data) + newline + 1 if newline >= 0 else 0
            data += more
        if not data:
            return
        yield _Block(data, length or len(data))
        begin += length or len(data)


def _after_bom(handle: int, at: int) -> int:
    return len(BOM) if at == 0 and os.pread(handle, len(BOM), 0) == BOM else at


def _next_line(handle: int, at: int, end: int) -> int:
    position = max(at - 1, 0)
    while position < end and (chunk := os.pread(handle, min(_CHUNK, end - position), position)):
        newline = chunk.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        position += len(chunk)
    return end


def line_blocks(name: str, path: Path, begin: int, end: int, size: int) -> Iterator[bytes]:
    """The bytes from `begin` to `end` in blocks of whole lines, of about `size` or of one longer line."""
    with reading(name, path), path.open("rb") as file:
        file.seek(begin)
        pending: list[bytes] = []
        position = begin
        while position < end and (chunk := file.read(min(size, end - position))):
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
