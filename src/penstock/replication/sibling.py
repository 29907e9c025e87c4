"""A replica that has nothing, or is far behind, begins with a copy of a sibling's newest checkpoint.

So does a run without replicas where there were some, and the other way round: the number of replicas may change.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from penstock.errors import CoordinationError
from penstock.runtime.checkpoint import newest_epoch
from penstock.runtime.manifest import CHECKPOINT, COMMITTED, SHAPE
from penstock.runtime.snapshots import passing_snapshot
from penstock.runtime.state_files import link_checkpoint
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.swap import swapped

WORTH_COPYING = 10
"""How many epochs behind a sibling: a copy takes about as long as a few epochs."""


def begin_from_sibling(
    state: StateFolder, siblings: Iterable[StateFolder], topology: str, coordinator: str
) -> int | None:
    """Take over the checkpoint of the sibling that is furthest, if that is worth it; returns its epoch.

    All or nothing. The sibling may be running. Who calls it must hold `state`.
    """
    # One that has come to the end has nothing to go on with.
    going_on = (each for each in siblings if not each.committed().ended)
    best = max(going_on, key=lambda each: each.committed().epoch, default=None)
    own = newest_epoch(state.checkpoint)
    behind = 0 if best is None else best.committed().epoch - (0 if own is None else own.epoch)
    if best is None or behind < (1 if own is None else WORTH_COPYING):
        return None
    try:
        with (
            passing_snapshot(best, topology, coordinator) as (draft, manifest),
            swapped(state) as prepared,
        ):
            link_checkpoint(draft / CHECKPOINT, manifest.batch, prepared / CHECKPOINT, state.checkpoint)
            for name in (SHAPE, COMMITTED):
                shutil.copyfile(draft / name, prepared / name)
            return manifest.epoch
    except CoordinationError:
        # The sibling has no whole epoch yet: replaying is as good.
        return None


def go_on_without_replicas(home: StateFolder, topology: str, coordinator: str) -> int | None:
    """Take over from the replica that is furthest, where there were replicas; returns its epoch.

    Raises CoordinationError when one of them is running.
    """
    states = home.replicas()
    for name, state in states.items():
        running = state.running()
        if running is not None:
            raise CoordinationError(
                f"replica {name} of '{topology}' is running: process {running}; stop it first, or run with as many "
                "`replicas` as before"
            )
    furthest = home.furthest().committed()
    with home.held():
        taken = begin_from_sibling(home, states.values(), topology, coordinator)
    if furthest.ended:
        # As after any run that has come to its end, the next begins anew.
        home.record(furthest)
    home.forget_replicas()
    return taken
