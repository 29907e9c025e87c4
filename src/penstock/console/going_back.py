"""Restore a topology whose replicas are on several nodes: what one of them looks at before it is wanted.

It is carried out when the nodes start it again: it is a new history that begins with a checkpoint. The first node that
comes goes back to it, and the others clear what they have and begin with their sibling's. So one change of what is
wanted decides: before it nothing was touched, after it every node comes to it, whenever it is there.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from penstock.console.calling import Calling
from penstock.console.desired import Beginning, Wanted
from penstock.coordination.opening import open_coordinator
from penstock.errors import CommandRefused
from penstock.replication.roster import Roster
from penstock.runtime.manifest import MANIFEST
from penstock.runtime.state_folder import StateFolder

_PATIENCE_SECONDS = 15.0
"""Longer than the session of one that was killed."""
_LOOK_SECONDS = 0.1


def holder_of(calling: Calling, wanted: Wanted, name: str, alive: Collection[str]) -> str:
    """The node among whose files a checkpoint is; raises CommandRefused where it is of no use to all nodes."""
    found = [*calling.home.nodes.glob(f"*/{wanted.name}/state/snapshots/*/{MANIFEST}")]
    there = sorted((path.parent.name, path.parents[4].name) for path in found if not path.parent.name.startswith("."))
    holders = [node for checkpoint, node in there if checkpoint == name]
    apart = [node for node in _homes(wanted) if not (calling.home.nodes / node).is_dir()]
    if not holders:
        listed = ", ".join(f"{checkpoint} (node {node})" for checkpoint, node in there) or "none"
        away = [node for node in apart if node not in alive]
        unseen = f"; node {', '.join(away)}, which may have it, is away" if away else ""
        raise CommandRefused(f"node {calling.node} sees no checkpoint '{name}' of '{wanted.name}': it sees {listed}"
                             f"{unseen}")  # fmt: skip
    if apart:
        raise CommandRefused(
            f"checkpoint '{name}' of '{wanted.name}' is on node {', '.join(holders)}, and {', '.join(apart)} could not "
            "begin with it: all of its nodes must share the console's home (--home on a disk that all see)"
        )
    if len(holders) > 1:
        raise CommandRefused(
            f"nodes {' and '.join(holders)} each have a checkpoint '{name}' of '{wanted.name}': remove one, with "
            "`penstock checkpoint --delete` and that node's --state"
        )
    return holders[0]


def await_nobody(wanted: Wanted, address: str) -> None:
    """Until no replica runs anywhere; raises CommandRefused that says which does."""
    coordinator = open_coordinator(address)
    try:
        roster, deadline = Roster(coordinator), time.monotonic() + _PATIENCE_SECONDS
        while running := roster.members():
            if time.monotonic() > deadline:
                listed = ", ".join(f"replica {name} on node {wanted.nodes.get(name, '?')} (process {member.process} on "
                                   f"{member.host})" for name, member in sorted(running.items()))  # fmt: skip
                raise CommandRefused(
                    f"'{wanted.name}' still runs, and nothing was done: {listed}. A node that is away stops nothing: "
                    "start its supervisor, or end the process"
                )
            time.sleep(_LOOK_SECONDS)
    finally:
        coordinator.close()


def going_back(now: Wanted, looked_at: Wanted, node: str, checkpoint: str, fresh_sinks: bool) -> Wanted:
    """What is wanted from now on; raises CommandRefused where it is not what was looked at any more."""
    if now.fresh != looked_at.fresh:
        raise CommandRefused(f"'{now.name}' was begun anew, or restored, meanwhile: nothing was done")
    history = now.fresh + 1
    return replace(now, fresh=history, beginning=Beginning(history, node, checkpoint, fresh_sinks))


def refuse_taken_name(calling: Calling, wanted: Wanted, name: str, own: StateFolder) -> None:
    """Raises CommandRefused for the name of a checkpoint that another node has: which is meant could not be told."""
    for path in sorted(calling.home.nodes.glob(f"*/{wanted.name}/state/snapshots/{name}")):
        if path != own.snapshots / name:
            raise CommandRefused(f"there is a checkpoint '{name}' of '{wanted.name}' already, on node "
                                 f"{path.parents[3].name}: choose another name")  # fmt: skip


def _homes(wanted: Wanted) -> list[str]:
    return sorted(set(wanted.nodes.values()))
