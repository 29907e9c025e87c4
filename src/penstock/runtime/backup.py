"""Copy what a topology remembers to a folder that is complete in itself."""

from __future__ import annotations

from pathlib import Path

from penstock.runtime.manifest import Look, Manifest, copy_snapshot
from penstock.runtime.snapshots import find_snapshot, passing_snapshot
from penstock.runtime.state_folder import StateFolder


def back_up(
    state: StateFolder,
    topology: str,
    coordinator: str,
    target: Path,
    name: str | None = None,
    look: Look = lambda done, whole: None,
) -> Manifest:
    """Copy a named snapshot, or the newest epoch as it is now, to an empty folder.

    Raises CoordinationError when there is no such snapshot, nothing to copy, or something in the folder.
    """
    if name is not None:
        find_snapshot(state, name)
        return copy_snapshot(state.snapshots / name, target, look)
    with passing_snapshot(state.furthest(), topology, coordinator) as (passing, _):
        return copy_snapshot(passing, target, look)
