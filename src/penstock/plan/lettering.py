"""Text in a picture: escaped for XML, and measured without a font by generous widths, so that it fits."""

from __future__ import annotations

import unicodedata
from xml.sax.saxutils import escape

_EMS = {
    char: ems
    for ems, chars in {
        0.28: "il'",
        0.37: "j., f",
        0.46: "trI()[]:;|!J-\"/\\",
        0.55: "csz",
        0.84: "w+=<>~^#×→",
        0.88: "M",
        1.00: "mW@…",
        1.08: "%",
    }.items()
    for char in chars
}
"""The wider of Verdana and DejaVu Sans, the widest sans-serif fonts in common use."""
_USUAL, _CAPITAL, _FOREIGN, _FULL = 0.64, 0.80, 1.02, 1.25
_BOLD = 1.17


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """An upper bound, in the unit of `size`, of how wide a sans-serif font sets `text`."""
    return sum(_ems(char) for char in text) * size * (_BOLD if bold else 1.0)


def shortened(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """`text`, or as much of its beginning as fits `width` together with an ellipsis."""
    if text_width(text, size, bold=bold) <= width:
        return text
    kept = text
    while kept and text_width(kept.rstrip() + "…", size, bold=bold) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _ems(char: str) -> float:
    if char in _EMS:
        return _EMS[char]
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return _FULL
    if not char.isascii():
        return _FOREIGN
    return _CAPITAL if char.isupper() or char == "&" else _USUAL


def escaped(text: str) -> str:
    """`text` for XML, in an element or a quoted attribute; characters XML cannot hold become �."""
    valid = "".join(char if _fits_xml(char) else "�" for char in text)
    return escape(valid, {'"': "&quot;", "'": "&#39;"})


def _fits_xml(char: str) -> bool:
    code = ord(char)
    return (code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD
            or 0x10000 <= code <= 0x10FFFF)
