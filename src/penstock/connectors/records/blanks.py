"""Blanks around CSV fields, taken away before a block is parsed.

Arrow takes a quote for a quote only right after the delimiter, so `1, "a, b"` has to become `1,"a, b"` first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE = b'\t\n\r "'


def strip_blanks(data: bytes, delimiter: bytes) -> bytes:
    """`data` without the blanks around its fields; blanks within quoted fields stay.

    `data` is whole lines, each ending in a newline; a quoted field ends on the line on which it begins.
    """
    text = np.frombuffer(b"\n" + data, dtype=np.uint8)
    blank = _blank_bytes(text, delimiter)
    edge = (text == delimiter[0]) | (text == _NEWLINE) | (text == _RETURN)
    if not ((blank[:-1] & edge[1:]).any() or (edge[:-1] & blank[1:]).any()):
        return data
    runs = _Runs.of(text, blank, delimiter)
    at_edge = runs.after_edge | runs.before_edge
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes):
        if not _every_quote_is_in_place(text, quotes, runs, delimiter):
            return _strip_field_by_field(data, delimiter)
        at_edge &= np.searchsorted(quotes, runs.starts) % 2 == 0
    steps = np.zeros(len(text), dtype=np.int8)
    steps[runs.starts[at_edge]] = 1
    steps[runs.ends[at_edge]] = -1
    kept: Bytes = text[np.cumsum(steps, dtype=np.int8) == 0]
    return bytes(kept[1:].tobytes())


@dataclass(frozen=True)
class _Runs:
    """Every run of blanks: where it starts and ends, and whether a field's edge stands before or after it."""

    starts: Positions
    ends: Positions
    after_edge: Mask
    before_edge: Mask

    @classmethod
    def of(cls, text: Bytes, blank: Mask, delimiter: bytes) -> _Runs:
        # The text begins and ends with a newline, so the changes come in pairs.
        changes = np.flatnonzero(blank[1:] != blank[:-1]) + 1
        starts, ends = changes[0::2], changes[1::2]
        return cls(starts, ends, _is_edge(text, starts - 1, delimiter), _is_edge(text, ends, delimiter))


def _is_edge(text: Bytes, at: Positions, delimiter: bytes) -> Mask:
    byte = text[at]
    line_end = (byte == _RETURN) & (text[np.minimum(at + 1, len(text) - 1)] == _NEWLINE)
    found: Mask = (byte == delimiter[0]) | (byte == _NEWLINE) | line_end
    return found


def _every_quote_is_in_place(text: Bytes, quotes: Positions, runs: _Runs, delimiter: bytes) -> bool:
    """Whether quotes taken in pairs are just the quoted fields: none open at a line's end, none in a field.

    Before an opening quote there is a field's edge, blanks aside, or a closing quote (the two are an escaped
    quote); after a closing one likewise.
    """
    if len(quotes) % 2 or not len(runs.starts):
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    newlines = np.flatnonzero(text == _NEWLINE)
    if (np.searchsorted(newlines, opening) != np.searchsorted(newlines, closing)).any():
        return False
    last = len(runs.starts) - 1
    run_before = np.minimum(np.searchsorted(runs.ends, opening), last)
    run_after = np.minimum(np.searchsorted(runs.starts, closing), last)
    opens = (
        _is_edge(text, opening - 1, delimiter)
        | (text[opening - 1] == _QUOTE)
        | ((runs.ends[run_before] == opening) & runs.after_edge[run_before])
    )
    closes = (
        _is_edge(text, closing + 1, delimiter)
        | (text[closing + 1] == _QUOTE)
        | ((runs.starts[run_after] == closing + 1) & runs.before_edge[run_after])
    )
    return bool(opens.all() and closes.all())


def _strip_field_by_field(data: bytes, delimiter: bytes) -> bytes:
    return _edge_and_quoted_field(delimiter).sub(rb"\1\2", b"\n" + data)[1:]


@lru_cache
def _edge_and_quoted_field(delimiter: bytes) -> re.Pattern[bytes]:
    """A field's edge and, if one begins there, the whole quoted field, so that its inside is passed over."""
    blank = {b" ": rb"\t", b"\t": rb"[ ]"}.get(delimiter, rb"[ \t]")
    edge = blank + rb"*+(" + re.escape(delimiter) + rb"|\r?\n)" + blank + rb"*+"
    # Not `?+`: in Python 3.11.2, which Debian has, a group that fails in its middle leaves what it passed as matched.
    return re.compile(edge + rb'("[^"\n]*+(?:""[^"\n]*+)*+")?')


def _blank_bytes(text: Bytes, delimiter: bytes) -> Mask:
    blanks = [byte for byte in (_SPACE, _TAB) if byte != delimiter[0]]
    found: Mask = text == blanks[0]
    return found | (text == blanks[1]) if len(blanks) == 2 else found
