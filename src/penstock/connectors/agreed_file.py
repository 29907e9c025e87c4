"""Replicas append the same epochs to one file, without a lock: nobody waits for a sibling that is frozen.

The first to give an epoch's bytes their name decides them. Everybody writes the decided bytes to where the epoch
before ends, so all that is ever written twice is the same bytes to the same place, and a sibling that wakes up
after an hour does no harm.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from penstock.connectors.staged_files import link_first_wins

_BLOCK = 1 << 20


def append_agreed(
    target: Path, agreed: Path, proposed: Path, start: int, is_done: Callable[[], bool]
) -> int | None:
    """Write the agreed bytes of an epoch, those in `proposed` unless `agreed` is there already, from `start` on.

    Returns where they end; None when a sibling has done the epoch meanwhile, as `is_done` says. `agreed` is removed by
    the caller, and not before `is_done` would say so.
    """
    agreed.parent.mkdir(parents=True, exist_ok=True)
    link_first_wins(proposed, agreed)
    try:
        source = agreed.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    with source:
        # Not before it is open: what has the name while the epoch is not done is what was decided, and once it is done
        # a third sibling may give the name to its own bytes.
        if is_done():
            agreed.unlink(missing_ok=True)
            return None
        return _write_at(target, start, source.fileno())


def _write_at(target: Path, start: int, source: int) -> int:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        at = start
        while block := os.read(source, _BLOCK):
            view = memoryview(block)
            while view:
                written = os.pwrite(handle, view, at)
                at, view = at + written, view[written:]
        os.fsync(handle)
        return at
    finally:
        os.close(handle)
