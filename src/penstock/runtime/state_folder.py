"""The folder where a topology keeps what it must remember between two starts.

    .penstock/<topology>/
      coordinator.sqlite   the epoch log
      checkpoint/          Spark's offset log, commit log and state
      committed            the last epoch whose sinks are committed
      malformed/           malformed records on their way to the driver
      logs/                Spark's log and what custom code printed
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.topology.model import Topology

FOLDER = ".penstock"


@dataclass(frozen=True)
class Committed:
    """How far the sinks are."""

    epoch: int = 0
    ended: bool = False
    """True when the last epoch of a bounded input is committed."""


@dataclass(frozen=True)
class StateFolder:
    """The paths of one topology's state."""

    path: Path

    @classmethod
    def of(cls, topology: Topology, override: Path | None = None) -> StateFolder:
        return cls(override or topology.folder.absolute() / FOLDER / topology.name)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def committed(self) -> Committed:
        """What the last run left; nothing when there was none."""
        try:
            return Committed(**json.loads((self.path / "committed").read_text()))
        except FileNotFoundError:
            return Committed()

    def record(self, committed: Committed) -> None:
        temporary = self.path / ".committed"
        temporary.write_text(json.dumps(committed.__dict__))
        temporary.replace(self.path / "committed")

    def clear(self) -> None:
        """Forget everything but the logs."""
        for name in ("checkpoint", "malformed"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for pattern in ("coordinator.sqlite*", "committed", ".committed"):
            for file in self.path.glob(pattern):
                file.unlink()

    def prepare(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
