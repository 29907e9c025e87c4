"""Durations with a unit, as users write them: `500ms`, `2s`, `1 minute`."""

from __future__ import annotations

import re

UNITS = {
    "ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
"""Every unit that can be written, in seconds."""

PATTERN = rf"^\s*\d+(\.\d+)?\s*({'|'.join(UNITS)})\s*$"

_DURATION = re.compile(rf"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>{'|'.join(UNITS)})\s*")
_SHORT = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def parse_duration(text: str) -> float | None:
    """A duration in seconds; None where the text is none."""
    match = _DURATION.fullmatch(text)
    return float(match["number"]) * UNITS[match["unit"]] if match else None


def write_duration(milliseconds: int) -> str:
    """A duration in the largest unit of which it is a whole number."""
    unit, length = next((unit, length) for unit, length in _SHORT.items() if milliseconds % length == 0)
    return f"{milliseconds // length}{unit}"
