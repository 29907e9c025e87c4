"""Lists of numbers on the command line."""

from __future__ import annotations

from penstock.cli.screen import fail


def numbers_in(option: str, text: str) -> list[int]:
    """The positive numbers of `1,2,3`; ends the command where something else is written."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        fail(f"{option} {text}: write numbers with commas between them, for example 1,2,3", 2)
    return [int(part) for part in parts]
