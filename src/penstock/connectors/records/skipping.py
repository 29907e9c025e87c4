"""Lines that are no records: blank ones and comments, found in whole blocks at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

NEWLINE, _SPACE = b"\n "
_BLANKS = np.frombuffer(b" \t\r\x0b\x0c", dtype=np.uint8)
_BLANKS_SEEN_TOGETHER = 64
"""Lines that begin with more blanks than this are looked at one by one."""
_NOWHERE = np.empty(0, dtype=np.int64)


def line_begins(text: Bytes) -> Positions:
    """Where lines begin, in order; the last may lack its newline."""
    ends = np.flatnonzero(text == NEWLINE)
    begins = np.empty(len(ends) + 1, dtype=np.int64)
    begins[0] = 0
    np.add(ends, 1, out=begins[1:])
    return begins[:-1] if begins[-1] == len(text) else begins


@dataclass(frozen=True)
class Skipping:
    """Which lines a source passes over. Blanks before a comment are allowed."""

    blank: bool = False
    comment: bytes = b""

    def among(self, block: bytes, text: Bytes, begins: Positions) -> Positions:
        """Where the lines begin that are no records, in order; `text` is whole lines at the beginning of the block,
        and they begin at `begins`. The last may lack its newline."""
        if not len(text) or not (self.blank or self.comment):
            return _NOWHERE
        suspects = begins[self._are_suspect(text[begins])]
        return suspects[self._are_no_records(block, text, suspects)] if len(suspects) else suspects

    def _are_suspect(self, first: Bytes) -> Mask:
        """Whether the first byte of a line is a blank, its newline, or how comments begin."""
        seem = first <= _SPACE
        if self.comment:
            seem |= first == self.comment[0]
        return seem

    def _are_no_records(self, block: bytes, text: Bytes, starts: Positions) -> Mask:
        found = np.zeros(len(starts), dtype=np.bool_)
        which, at = np.arange(len(starts)), starts
        for _ in range(_BLANKS_SEEN_TOGETHER):
            byte = text[np.minimum(at, len(text) - 1)]
            over = (at >= len(text)) | (byte == NEWLINE)
            if self.blank:
                found[which[over]] = True
            if self.comment:
                found[which[self._is_comment(text, at)]] = True
            further = ~over & np.isin(byte, _BLANKS)
            which, at = which[further], at[further] + 1
            if not len(which):
                return found
        for index, begin in zip(which.tolist(), at.tolist(), strict=True):
            end = block.find(b"\n", begin)
            rest = block[begin : end if 0 <= end < len(text) else len(text)].lstrip()
            found[index] = (self.blank and not rest) or (bool(self.comment) and rest.startswith(self.comment))
        return found

    def _is_comment(self, text: Bytes, at: Positions) -> Mask:
        same = np.ones(len(at), dtype=np.bool_)
        for offset, byte in enumerate(self.comment):
            position = at + offset
            same &= (position < len(text)) & (text[np.minimum(position, len(text) - 1)] == byte)
        return same
