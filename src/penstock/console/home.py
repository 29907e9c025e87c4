"""Where a node keeps what it was given, and what its topologies have."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.console.private_files import private, write_private
from penstock.runtime.state_folder import StateFolder

VARIABLE = "PENSTOCK_HOME"
_BUNDLE_SECONDS = 86_400.0


@dataclass(frozen=True)
class Begun:
    """With what a topology was started last on this node."""

    digest: str = ""
    file: str = ""
    sets: tuple[str, ...] = ()
    fresh: int = 0
    here: tuple[str, ...] = ()
    """The replicas of this node, where others have the rest."""
    starts: int = 0


@dataclass(frozen=True)
class TopologyPlace:
    """One topology on one node."""

    path: Path

    @property
    def work(self) -> Path:
        """The files of its bundle, and what it writes to relative paths."""
        return self.path / "work"

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.path / "state")

    @property
    def log(self) -> Path:
        """What its supervisor says."""
        return self.path / "run.log"

    @property
    def progress(self) -> Path:
        """How far it is, as its supervisor has it."""
        return self.path / "progress.json"

    def begun(self) -> Begun:
        try:
            fields = json.loads((self.path / "begun").read_text())
        except (FileNotFoundError, ValueError):
            return Begun()
        return Begun(**{**fields, "sets": tuple(fields["sets"]), "here": tuple(fields.get("here", ()))})

    def note(self, begun: Begun) -> None:
        self.keep_secret(begun.sets)
        self.path.mkdir(parents=True, exist_ok=True)
        write_private(self.path / "begun", json.dumps(asdict(begun)).encode())


    def secrets(self) -> tuple[str, ...]:
        """Everything that was ever set for it here: it may still stand in logs and in dead letters."""
        try:
            return tuple(json.loads(self._secrets.read_text()))
        except (FileNotFoundError, ValueError):
            return ()

    def keep_secret(self, secrets: Sequence[str]) -> None:
        """Add to them, before a process gets to know them."""
        known = self.secrets()
        if new := [each for each in dict.fromkeys(secrets) if each not in known]:
            self.path.mkdir(parents=True, exist_ok=True)
            write_private(self._secrets, json.dumps([*known, *new]).encode())

    @property
    def _secrets(self) -> Path:
        return self.path / "secrets"


@dataclass(frozen=True)
class ConsoleHome:
    """The folder of a console on this machine."""

    path: Path

    @classmethod
    def of(cls, given: Path | None) -> ConsoleHome:
        """What the user gave, or what the environment says, or `~/.penstock`."""
        return cls((given or Path(os.environ.get(VARIABLE) or Path.home() / ".penstock")).expanduser().absolute())

    @property
    def coordinator(self) -> str:
        """The address of the one in this folder, for one machine."""
        return f"sqlite:{self._coordinator_file}"

    @property
    def _coordinator_file(self) -> Path:
        return self.path / "console.sqlite"

    def make_private(self, coordinator: str) -> None:
        """Have what is kept in this folder's coordinator be for its owner only, where that is the one that is used."""
        if coordinator == self.coordinator:
            # What is wrong with the disk is told by who opens the coordinator.
            with suppress(OSError):
                self.path.mkdir(parents=True, exist_ok=True)
                # What SQLite puts beside it has the same rights.
                open(self._coordinator_file, "ab", opener=private).close()

    @property
    def audit(self) -> Path:
        """Who commanded what."""
        return self.path / "audit.jsonl"

    def bundle(self, digest: str) -> Path:
        return self.path / "bundles" / f"{digest}.zip"

    def keep_bundle(self, digest: str, packed: bytes) -> None:
        path = self.bundle(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, packed)

    def forget_bundles(self, wanted: Collection[str]) -> None:
        """Remove those that nobody wants any more, and that are not of today: somebody may be about to want one."""
        # Also drafts of a master that was killed.
        for path in (self.path / "bundles").glob("*"):
            with suppress(FileNotFoundError):
                if path.stem not in wanted and path.stat().st_mtime < time.time() - _BUNDLE_SECONDS:
                    path.unlink()

    @property
    def nodes(self) -> Path:
        """What the nodes have that use this home."""
        return self.path / "nodes"

    def topology(self, name: str, node: str) -> TopologyPlace:
        """A name is one of a topology that was checked: letters, digits, `_` and `-`."""
        return TopologyPlace(self.nodes / node / name)
