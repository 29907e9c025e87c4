"""Problems about a name that is not there, with the name that was meant."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.topology.model import Location
from penstock.topology.problems import Problem, suggest


def not_found(
    where: Location, message: str, name: str, candidates: Iterable[str], listing: str = "there are"
) -> Problem:
    """`message` and the nearest of `candidates`; when none is near, a hint that lists them all."""
    known = list(dict.fromkeys(candidates))
    near = suggest(name, known)
    if near:
        return Problem(where, f"{message}: {near}")
    return Problem(where, message, f"{listing} {', '.join(known)}" if known else "")
