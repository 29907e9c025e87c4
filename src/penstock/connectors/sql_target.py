"""What an `sql` sink was told: which database, which table, and how rows go into it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["append", "upsert"]
Existing = Literal["refuse", "keep", "overwrite"]

MODES: tuple[Mode, ...] = ("append", "upsert")
EXISTING: tuple[Existing, ...] = ("refuse", "keep", "overwrite")


@dataclass(frozen=True)
class Target:
    """A table in a database, and the sink that writes to it. Plain settings, so that it can travel."""

    topology: str
    sink: str
    url: str = field(repr=False)
    """With driver and password: never shown."""
    shown: str
    """The address for messages, without the password."""
    table: str
    schema: str | None = None
    mode: Mode = "append"
    key: tuple[str, ...] = ()
    existing: Existing = "refuse"
    patience: float = 30.0
    """For how many seconds a commit waits for a database that went away."""

    @property
    def table_name(self) -> str:
        """The table as the user wrote it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @property
    def words(self) -> str:
        """The table as messages speak of it."""
        return f"table '{self.table_name}' of {self.shown}"
