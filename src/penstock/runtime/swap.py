"""Put a new set of files in the place of the old ones in a state folder: all of them or none, also under `kill -9`.

    prepared/   is being filled; after a crash it is thrown away: the old files count
    ready/      is filled; after a crash it is carried out: the new files count

One rename makes the first into the second. Only who holds the state folder may call anything here.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.runtime.state_folder import StateFolder

_PREPARED = "prepared"
_READY = "ready"
_DISCARDED = "discarded"


@contextmanager
def swapped(state: StateFolder) -> Iterator[Path]:
    """Gives an empty folder to fill. At the end of the block its entries replace those of the same names.

    When the block raises, nothing has happened.
    """
    settle(state)
    prepared = state.path / _PREPARED
    prepared.mkdir(parents=True)
    try:
        yield prepared
        prepared.rename(state.path / _READY)
    except BaseException:
        shutil.rmtree(prepared, ignore_errors=True)
        raise
    settle(state)


def settle(state: StateFolder) -> bool:
    """Bring to an end what a crash interrupted; whether a swap was carried out."""
    shutil.rmtree(state.path / _PREPARED, ignore_errors=True)
    ready = state.path / _READY
    unfinished = ready.is_dir()
    if unfinished:
        for entry in sorted(ready.iterdir()):
            _discard(state.path / entry.name, state.path / _DISCARDED)
            entry.rename(state.path / entry.name)
        ready.rmdir()
    shutil.rmtree(state.path / _DISCARDED, ignore_errors=True)
    return unfinished


def is_unsettled(state: StateFolder) -> bool:
    """Whether a crash has left a swap to be carried out."""
    return (state.path / _READY).is_dir()


def _discard(entry: Path, discarded: Path) -> None:
    # A folder can be renamed at once, and removed only file by file.
    if entry.exists():
        discarded.mkdir(exist_ok=True)
        entry.rename(discarded / uuid.uuid4().hex)
