"""A replica that has nothing, or is far behind, begins with a copy of a sibling's newest checkpoint.

So does a run without replicas where there were some, and the other way round: the number of replicas may change.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Mapping

from penstock.errors import CoordinationError
from penstock.runtime.checkpoint import newest_epoch
from penstock.runtime.manifest import CHECKPOINT, COMMITTED, SHAPE
from penstock.runtime.snapshots import passing_snapshot
from penstock.runtime.state_files import link_checkpoint
from penstock.runtime.state_folder import StateFolder, UnusableState
from penstock.runtime.swap import is_unsettled, swapped

WORTH_COPYING = 10
"""How many epochs behind a sibling: a copy takes about as long as a few epochs."""
_DAMAGE = (UnusableState, OSError, ValueError, LookupError, zipfile.BadZipFile)
"""What comes of files that cannot be read or written, or are not what they were."""


class _NoneCopied(CoordinationError):
    """There are checkpoints to begin with, and disks that fail."""


def begin_from_sibling(
    state: StateFolder, siblings: Iterable[StateFolder], topology: str, coordinator: str
) -> int | None:
    """Take over the checkpoint of the sibling that is furthest, if that is worth it; returns its epoch.

    All or nothing. The sibling may be running. One whose disk fails is passed over. Who calls it must hold `state`.
    """
    return _taken_if_possible(state, siblings, topology, coordinator, _worth_copying(state))


def begin_as(state: StateFolder, sibling: StateFolder, topology: str, coordinator: str) -> int | None:
    """Take over the checkpoint of this sibling, wherever that is: the same as `begin_from_sibling` otherwise."""
    return _taken_if_possible(state, [sibling], topology, coordinator, 1)


def to_be_like(states: Mapping[str, StateFolder]) -> str | None:
    """The replica whose state all go on with where states differ, the same for whoever asks; None: there is none.

    It is the first by name that has not fallen far behind.
    """
    reached = {name: state.readable() for name, state in states.items()}
    head = max((so_far.epoch for so_far in reached.values()), default=0)
    near = [name for name, so_far in reached.items()
            if so_far.epoch and not so_far.ended and so_far.epoch > head - WORTH_COPYING]  # fmt: skip
    return min(near, key=lambda name: (len(name), name), default=None)


def _worth_copying(state: StateFolder) -> int:
    """How far a sibling must have come."""
    own = newest_epoch(state.checkpoint)
    return 1 if own is None else own.epoch + WORTH_COPYING


def _taken_if_possible(
    state: StateFolder, siblings: Iterable[StateFolder], topology: str, coordinator: str, least: int
) -> int | None:
    try:
        return _take_over(state, siblings, topology, coordinator, least)
    except _NoneCopied:
        # Replaying may do.
        return None


def _take_over(
    state: StateFolder, siblings: Iterable[StateFolder], topology: str, coordinator: str, least: int
) -> int | None:
    """From one that has come to epoch `least`; raises _NoneCopied when the disks of all such fail, or the own one."""
    reached = {each: each.readable() for each in siblings}
    # One that has come to the end has nothing to go on with.
    worth_it = [each for each, so_far in reached.items() if so_far.epoch >= least and not so_far.ended]
    failed: Exception | None = None
    for sibling in sorted(worth_it, key=lambda each: reached[each].epoch, reverse=True):
        # Its disk may be full, or only be read by now: then the files are copied to the own one at once.
        for at in (sibling, state):
            try:
                return _copy(sibling, state, topology, coordinator, at)
            except CoordinationError:
                # The sibling has no whole epoch yet: replaying is as good.
                break
            except _DAMAGE as error:
                if is_unsettled(state):
                    # The copy is whole, and the own disk failed when it was put in place.
                    raise
                failed = error
    if failed is not None:
        raise _NoneCopied(f"no checkpoint of '{topology}' can be copied to {state.path}: {failed}") from failed
    return None


def _copy(sibling: StateFolder, state: StateFolder, topology: str, coordinator: str, at: StateFolder) -> int:
    with (
        passing_snapshot(sibling, topology, coordinator, at=at) as (draft, manifest),
        swapped(state) as prepared,
    ):
        link_checkpoint(draft / CHECKPOINT, manifest.batch, prepared / CHECKPOINT, state.checkpoint)
        for name in (SHAPE, COMMITTED):
            shutil.copyfile(draft / name, prepared / name)
        return manifest.epoch


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
    # All must be read: what they have is thrown away afterwards.
    furthest = max((each.committed() for each in (home, *states.values())), key=lambda committed: committed.epoch)
    with home.held():
        taken = _take_over(home, states.values(), topology, coordinator, _worth_copying(home))
    if furthest.ended:
        # As after any run that has come to its end, the next begins anew.
        home.record(furthest)
    home.forget_replicas()
    return taken
