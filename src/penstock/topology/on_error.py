"""`on_error` as users write it: `fail`, `drop`, `dead-letter` or `retry(3)`."""

from __future__ import annotations

import re

from penstock.errors import TopologyError
from penstock.topology.model import ErrorKind, OnError
from penstock.topology.problems import suggest

MAX_RETRIES = 100

PATTERN = r"^\s*(fail|drop|dead-letter|retry\s*\(\s*\d+\s*\))\s*$"
"""What `parse_on_error` takes, for JSON Schema."""

_WRITTEN = re.compile(r"\s*(?P<kind>[\w-]+)\s*(?:\(\s*(?P<number>-?\d+)\s*\)\s*)?")
_CHOICES = ("fail", "drop", "dead-letter", "retry(n)")


def parse_on_error(text: str) -> OnError:
    """Read it; raises TopologyError that says what would be right."""
    match = _WRITTEN.fullmatch(text)
    if match is None or match["kind"] not in tuple(ErrorKind):
        near = suggest(match["kind"] if match else text, tuple(ErrorKind))
        raise TopologyError(f"'{text}' is not one of {', '.join(_CHOICES)}" + (f": {near}" if near else ""))
    kind, number = ErrorKind(match["kind"]), match["number"]
    if kind is not ErrorKind.RETRY:
        if number is not None:
            raise TopologyError(f"'{text}': {kind} takes no number")
        return OnError(kind)
    if number is None:
        raise TopologyError("retry needs a number: write for example retry(3)")
    if not 1 <= int(number) <= MAX_RETRIES:
        raise TopologyError(f"'{text}' is impossible: retry 1 to {MAX_RETRIES} times")
    return OnError(kind, int(number))
