"""How a node calls `penstock` for its topologies."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.console.desired import Wanted
from penstock.console.home import ConsoleHome, TopologyPlace
from penstock.control.share import Share
from penstock.topology.loading import INHERITED_SETS

_OF_THE_CONSOLE = frozenset({"PENSTOCK_COORDINATOR", "PENSTOCK_TOKEN", "PENSTOCK_HOME", "PENSTOCK_CONSOLE"})


@dataclass(frozen=True)
class Calling:
    """What stands in the command lines of one node."""

    node: str
    home: ConsoleHome
    epoch_logs: str | None = None
    """The address of the coordinator for all topologies; None: each has a file of its own."""
    spread_logs: Path | None = None
    """Where those files are of topologies that several nodes of one machine share; None: in the home."""

    def here(self, wanted: Wanted) -> tuple[str, ...]:
        """The replicas that are this node's, where each has a node of its own."""
        return wanted.on(self.node) if wanted.spread else ()

    def line(self, verb: str, wanted: Wanted, place: TopologyPlace, *before: str) -> list[str]:
        """`penstock VERB FILE`, with where the topology has its state; `before` stands before the file."""
        shared = self.shared_log(wanted)
        logs = [] if shared is None else ["--coordinator", shared]
        return [sys.executable, "-m", "penstock", verb, *before, str(place.work / wanted.file), *logs,
                "--state", str(place.state.path)]  # fmt: skip

    def share(self, wanted: Wanted) -> list[str]:
        """What a run is told of its share, where other nodes have the rest."""
        if not wanted.spread:
            return []
        begins = wanted.begins_with
        back = [] if begins is None else ["--begin-with", str(self.checkpoint(wanted, begins.node, begins.checkpoint)),
                                          *(["--fresh-sinks"] if begins.fresh_sinks else [])]  # fmt: skip
        return ["--share", str(Share(self.here(wanted), wanted.fresh)), "--nodes", str(self.home.nodes), *back]

    def checkpoint(self, wanted: Wanted, node: str, name: str) -> Path:
        """Where a node's checkpoint is."""
        return self.home.topology(wanted.name, node).state.snapshots / name

    def shared_log(self, wanted: Wanted) -> str | None:
        """The coordinator of a topology, where it is not a file of its own among its state."""
        if self.epoch_logs is None and wanted.spread:
            return f"sqlite:{(self.spread_logs or self.home.path / 'spread') / wanted.name}.sqlite"
        return self.epoch_logs


def environment(sets: Sequence[str]) -> dict[str, str]:
    """As ours, but for what means something else to a topology; with what is set for it, as that may be a password."""
    ours = {name: value for name, value in os.environ.items() if name not in _OF_THE_CONSOLE}
    return ours | {INHERITED_SETS: json.dumps(list(sets))}


def secrets_of(sets: Sequence[str], variables: Sequence[str]) -> tuple[str, ...]:
    """What is told nobody: what is set, and what `${env:NAME}` stands for here, in the same form."""
    return (*sets, *(f"{name}={os.environ[name]}" for name in variables if name in os.environ))
