"""Lines of text made into Arrow batches, with the malformed ones set aside.

A format parses many lines at once and either takes them all or refuses them all; `salvage` halves what was
refused until only the bad records are left over. A format's verdict on a record never depends on its
neighbours, so however the input is cut, the same records are malformed.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Chunk, Malformed
from penstock.connectors.records.skipping import Bytes, Positions, Skipping, line_begins

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
"""What some programs write at the beginning of a file; it is no part of the first line."""


class Unfit(Exception):
    """Some of the records given do not fit the schema; for a single record, the text says why."""


class Lines:
    """A block of whole lines, the last one ending in a newline too, and what all formats ask of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.text: Bytes = np.frombuffer(data, dtype=np.uint8)

    @cached_property
    def begins(self) -> Positions:
        return line_begins(self.text)

    @property
    def count(self) -> int:
        return len(self.begins)

    @cached_property
    def first_bytes(self) -> Bytes:
        """The first byte of every line; of an empty one, its newline."""
        return self.text[self.begins]

    @cached_property
    def last_bytes(self) -> Bytes:
        """The byte before every newline; of an empty line, the newline before it."""
        next_begins = np.append(self.begins[1:], len(self.text))
        last: Bytes = self.text[np.maximum(next_begins - 2, 0)]
        return last

    def split(self) -> list[bytes]:
        """The lines one by one, each with its newline."""
        return [line + b"\n" for line in self.data[:-1].split(b"\n")]


class LineFormat(abc.ABC):
    """How lines become tuples: one line, one tuple."""

    schema: pa.Schema

    @abc.abstractmethod
    def parse(self, lines: Lines) -> pa.RecordBatch:
        """One row for each line, in order; raises Unfit when any of them is malformed.

        There is at least one line, all are UTF-8 and, except in plain text, none is blank.
        """


class TextFormat(LineFormat):
    """A line is the value of the one column."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def parse(self, lines: Lines) -> pa.RecordBatch:
        text = lines.data.replace(b"\r\n", b"\n") if b"\r" in lines.data else lines.data
        values = pc.split_pattern(pa.array([text[:-1]], pa.string()), "\n").flatten()
        return pa.RecordBatch.from_arrays([values], schema=self.schema)


@dataclass(frozen=True)
class LineReader:
    """Reads blocks of whole lines in one format; lines to be skipped give neither a row nor a malformed record."""

    format: LineFormat
    skipping: Skipping = Skipping()

    def lines(self, block: bytes, line: int) -> Lines:
        """A block of a file, whose first line is the file's line number `line`, counted from 1."""
        if line == 1:
            block = block.removeprefix(BOM)
        return Lines(block if block.endswith(b"\n") or not block else block + b"\n")

    def read(self, lines: Lines, path: str, line: int) -> Chunk:
        """The tuples of lines the first of which is the file's line number `line`."""
        try:
            records = self._only_records(lines)
            return Chunk(self._parse(records) if records.data else one_batch([], self.format.schema))
        except Unfit:
            return self._set_malformed_aside(lines, path, line)

    def _only_records(self, lines: Lines) -> Lines:
        """The lines without those to be skipped; themselves where there are none."""
        skipped = self._skipped(lines).tolist()
        if not skipped:
            return lines
        block = lines.data
        begins = [0, *(block.index(b"\n", start) + 1 for start in skipped)]
        return Lines(b"".join(block[begin:end] for begin, end in zip(begins, [*skipped, len(block)], strict=True)))

    def _skipped(self, lines: Lines) -> Positions:
        return self.skipping.among(lines.data, lines.text, lines.begins)

    def _parse(self, lines: Lines) -> pa.RecordBatch:
        check_utf8(lines.data)
        return self.format.parse(lines)

    def _set_malformed_aside(self, block: Lines, path: str, line: int) -> Chunk:
        skipped = set(self._skipped(block).tolist())
        lines: list[tuple[int, bytes]] = []
        position = 0
        for number, text in enumerate(block.split(), line):
            if position not in skipped:
                lines.append((number, text))
            position += len(text)
        batches, refused = salvage(lines, lambda part: self._parse(Lines(b"".join(text for _, text in part))))
        malformed = []
        for index, reason in refused:
            number, text = lines[index]
            raw = text.rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
            malformed.append(Malformed(raw, reason, f"{path}:{number}"))
        return Chunk(one_batch(batches, self.format.schema), tuple(malformed))


def salvage(
    records: Sequence[T], parse: Callable[[Sequence[T]], pa.RecordBatch]
) -> tuple[list[pa.RecordBatch], list[tuple[int, str]]]:
    """The rows of all records that `parse` takes, in order, and index and reason of each it refuses."""
    batches: list[pa.RecordBatch] = []
    refused: list[tuple[int, str]] = []
    waiting = [(0, len(records))] if records else []
    while waiting:
        begin, end = waiting.pop()
        try:
            batches.append(parse(records[begin:end]))
        except Unfit as error:
            if end - begin == 1:
                refused.append((begin, str(error)))
            else:
                middle = (begin + end) // 2
                waiting += [(middle, end), (begin, middle)]
    return batches, refused


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows in one batch, an empty one where there are none."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    merged = table.to_batches()
    return merged[0] if merged else pa.RecordBatch.from_pylist([], schema=schema)


def check_utf8(data: bytes) -> None:
    """Raises Unfit that names the byte when `data` is not UTF-8."""
    if data.isascii():
        return
    try:
        # As one Arrow string, because Arrow checks several times faster than Python decodes.
        bounds = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
        pa.Array.from_buffers(pa.large_string(), 1, [None, bounds, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{data[error.start]:02x}, number {error.start + 1} of the line"
            raise Unfit(f"not UTF-8: {wrong}") from None
