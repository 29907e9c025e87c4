"""A source that is only a number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    end: dict[str, Any]
    tuples: int
    ended: bool
    backlog: int


@dataclass(frozen=True)
class Rows:
    """A source of so many rows; `grows` when more may come."""

    available: int
    grows: bool = False

    def cut(self, start: dict[str, Any], limit: int) -> Answer:
        end = min(start["row"] + limit, self.available)
        ended = end == self.available and not self.grows
        return Answer({"row": end}, end - start["row"], ended, self.available - end)
