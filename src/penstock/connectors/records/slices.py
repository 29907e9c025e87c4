"""An epoch's parts of files, dealt out to tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from penstock.connectors.base import Slice
from penstock.connectors.records.files import Mark, TrackedFile

LEAST_SHARE = 1 << 20
"""Fewer bytes than this are not worth a task of their own."""

LEAST_ROWS = 10_000
"""Fewer rows than this are not worth a task of their own."""


@dataclass(frozen=True)
class Span:
    """A part of one file: from a mark to a place in it, and how many records lie between."""

    key: str
    file: TrackedFile
    begin: Mark
    end: int
    records: int


def deal_out(spans: list[Span], parallelism: int) -> list[list[Span]]:
    """The spans in order, in at most `parallelism` groups of about equal size, split between records."""
    total = sum((span.end - span.begin.at) * span.file.weight for span in spans)
    share = max(LEAST_SHARE, -(-total // max(parallelism, 1)))
    numbered: list[tuple[int, Span]] = []
    before = 0
    for span in spans:
        numbered += _split(span, before, share)
        before += (span.end - span.begin.at) * span.file.weight
    return [[span for _, span in group] for _, group in groupby(numbered, key=lambda item: item[0])]


def _split(span: Span, before: int, share: int) -> list[tuple[int, Span]]:
    """The pieces of a span that begins `before` bytes into the epoch, each with the number of its group."""
    pieces: list[tuple[int, Span]] = []
    rest = span
    while True:
        group = (before + (rest.begin.at - span.begin.at) * span.file.weight) // share
        target = span.begin.at - (before - (group + 1) * share) // span.file.weight
        middle = span.file.split(rest.begin, target, span.end) if target < span.end else None
        if middle is None or middle.at >= span.end:
            return [*pieces, (group, rest)]
        records = middle.records - rest.begin.records
        pieces.append((group, replace(rest, end=middle.at, records=records)))
        rest = replace(rest, begin=middle, records=rest.records - records)


def row_slices(begin: int, end: int, parallelism: int) -> list[Slice]:
    """The rows from `begin` to `end` in at most `parallelism` equal slices."""
    rows = end - begin
    share = max(LEAST_ROWS, -(-rows // max(parallelism, 1)))
    return [
        Slice(first - begin, {"begin": first, "end": min(first + share, end)}) for first in range(begin, end, share)
    ]
