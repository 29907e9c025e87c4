"""What is wrong with a topology, and where: the readers and the validation all speak in these."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.topology.model import Location


@dataclass(frozen=True)
class Problem:
    """One thing wrong, where the user wrote it, and what would be right."""

    where: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"{self.where}: " if str(self.where) else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{hint}"


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Say "did you mean 'tweets'?" with the nearest of `candidates`; empty when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean '{by_lower[near[0]]}'?" if near else ""
