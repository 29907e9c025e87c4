"""Several supervisors of one topology, each on a node of its own, with the replicas that are its share."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.coordination.base import Coordinator
from penstock.errors import CoordinationError
from penstock.runtime.state_folder import StateFolder

_BEING_MADE_READY = "being-made-ready"
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 180.0


@dataclass(frozen=True)
class Share:
    """The replicas that one node looks after, where others look after the rest."""

    here: tuple[str, ...]
    history: int = 0
    """How often the topology was begun anew: whoever comes first with a higher number clears what all share."""
    nodes: Path | None = None
    """Where all nodes keep what they have, if this one sees it: a replica begins with a sibling's checkpoint."""

    @classmethod
    def parse(cls, text: str, nodes: Path | None) -> Share:
        """Of `1,3@2`: replicas 1 and 3, begun anew twice."""
        here, _, history = text.partition("@")
        return cls(tuple(here.split(",")), int(history or 0), nodes)

    def __str__(self) -> str:
        return f"{','.join(self.here)}@{self.history}"

    def elsewhere(self, topology: str, own: StateFolder) -> tuple[StateFolder, ...]:
        """What other nodes have of a topology."""
        found = () if self.nodes is None else sorted(self.nodes.glob(f"*/{topology}/state"))
        return tuple(StateFolder(path) for path in found
                     if path.absolute() != own.path.absolute() and self._is_of_this_history(path))  # fmt: skip

    def _is_of_this_history(self, state: Path) -> bool:
        """A node that was away when the topology was begun anew, or has not got to it, still has the one before."""
        noted = StateFolder(state).history()
        if noted is not None:
            return noted == self.history
        try:
            return int(json.loads((state.parent / "begun").read_text())["fresh"]) == self.history
        except (OSError, ValueError, KeyError):
            return False


@contextmanager
def alone(coordinator: Coordinator) -> Iterator[None]:
    """While this is held nobody else makes ready what all share; one that dies over it lets go."""
    mine = uuid.uuid4().hex
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while coordinator.create_ephemeral(_BEING_MADE_READY, mine) != mine:
        wait(deadline, "another node to make the topology ready")
    try:
        yield
    finally:
        # Frozen for too long, one may have lost it to another.
        if coordinator.get(_BEING_MADE_READY) == mine:
            coordinator.delete(_BEING_MADE_READY)


def wait(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise CoordinationError(f"waited {_PATIENCE_SECONDS:.0f} s for {what}, in vain: see `penstock status`")
    time.sleep(_LOOK_SECONDS)


def a_while() -> float:
    """Until when to wait."""
    return time.monotonic() + _PATIENCE_SECONDS
