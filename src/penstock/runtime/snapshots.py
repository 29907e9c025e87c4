"""Named snapshots of a topology: all that it needs to go on from one epoch, taken while it runs.

    <state folder>/snapshots/<name>/
      checkpoint/     the part of Spark's checkpoint that the epoch needs, as links
      committed       how far the sinks are
      shape           what of the topology the state depends on
      epochs          what the epoch log knows up to that epoch
      manifest        what is in here; written last, so that a folder without it is no snapshot

A backup is a copy of such a folder. Its manifest has a digest of each file as well.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.errors import CoordinationError, TopologyError
from penstock.runtime.manifest import CHECKPOINT, COMMITTED, EPOCHS, MANIFEST, SHAPE, Contained, Manifest, read_manifest
from penstock.runtime.state_files import link_checkpoint, newest_committed, operator_ids, state_partitions
from penstock.runtime.state_folder import Committed, StateFolder, is_alive
from penstock.runtime.swap import is_unsettled
from penstock.spark.epoch_source import offset_epoch

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_ATTEMPTS = 50
_PAUSE_SECONDS = 0.02


def check_name(name: str) -> str:
    """The name, when it can be a snapshot's; raises TopologyError otherwise."""
    if not _NAME.fullmatch(name):
        raise TopologyError(
            f"'{name}' cannot be the name of a checkpoint: use letters, digits, '.', '_' and '-', beginning with a "
            "letter or a digit"
        )
    return name


def take_snapshot(state: StateFolder, topology: str, coordinator: str, name: str | None = None) -> Manifest:
    """Take a snapshot of the newest epoch that is done, whether the topology runs or not.

    Without a name it is called after the epoch. Raises CoordinationError when there is nothing to take or the name is
    taken.
    """
    if name is not None and (state.snapshots / check_name(name)).exists():
        raise CoordinationError(f"there is a checkpoint '{name}' already; choose another name, or --delete it")
    with passing_snapshot(state.furthest(), topology, coordinator, name) as (draft, manifest):
        try:
            state.snapshots.mkdir(parents=True, exist_ok=True)
            draft.rename(state.snapshots / manifest.name)
        except OSError as error:
            raise CoordinationError(
                f"there is a checkpoint '{manifest.name}' already; choose another name, or --delete it"
            ) from error
    return manifest


@contextmanager
def passing_snapshot(
    state: StateFolder, topology: str, coordinator: str, name: str | None = None, at: StateFolder | None = None
) -> Iterator[tuple[Path, Manifest]]:
    """A snapshot for the time of the block: its folder and what is in it.

    It is made beside the state, where its files are linked in a moment, unless it is to be made `at` another place.
    """
    at = at or state
    _remove_leftovers(at)
    draft = at.snapshots / f".{os.getpid()}-{uuid.uuid4().hex}"
    try:
        yield draft, _fill(draft, state, topology, coordinator, name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_leftovers(state: StateFolder) -> None:
    """What commands have left that were killed."""
    for draft in state.snapshots.glob(".*-*"):
        owner = draft.name[1:].partition("-")[0]
        if owner.isdigit() and not is_alive(int(owner)):
            shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, state: StateFolder, topology: str, coordinator: str, name: str | None) -> Manifest:
    batch, record = _link_newest(state, draft, topology)
    shape = json.loads(state.shape.read_text())
    (draft / SHAPE).write_text(json.dumps(shape))
    (draft / COMMITTED).write_text(json.dumps(asdict(_as_of(state.committed(), record))))
    (draft / EPOCHS).write_text("".join(f"{line}\n" for line in _known_epochs(coordinator, record.epoch)))
    manifest = Manifest(
        name or f"epoch-{record.epoch}",
        topology,
        record.epoch,
        batch,
        datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        state_partitions(draft / CHECKPOINT, batch),
        _named(shape, draft / CHECKPOINT),
        {path: Contained((draft / path).stat().st_size) for path in _files_in(draft)},
    )
    (draft / MANIFEST).write_text(manifest.to_json())
    return manifest


def _link_newest(state: StateFolder, draft: Path, topology: str) -> tuple[int, EpochRecord]:
    """Link the newest batch that is done. Spark's retention may be faster: then a newer one is there by now.

    A run that is just putting a new division of the state in place is waited for.
    """
    gone: FileNotFoundError | None = None
    for _ in range(_MOST_ATTEMPTS):
        if is_unsettled(state):
            time.sleep(_PAUSE_SECONDS)
            continue
        batch = newest_committed(state.checkpoint)
        record = None if batch is None else epoch_of_batch(state.checkpoint, batch)
        if batch is None or record is None or not record.epoch:
            raise CoordinationError(
                f"topology '{topology}' has committed no epoch yet, so there is nothing to take in {state.path}"
            )
        try:
            link_checkpoint(state.checkpoint, batch, draft / CHECKPOINT, draft / CHECKPOINT)
            return batch, record
        except FileNotFoundError as error:
            gone = error
            shutil.rmtree(draft, ignore_errors=True)
    why = gone or "something is just being put in its place"
    raise CoordinationError(f"the state in {state.checkpoint} is not whole: {why}") from gone


def epoch_of_batch(checkpoint: Path, batch: int) -> EpochRecord:
    return offset_epoch((checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])[1]


def _as_of(committed: Committed, record: EpochRecord) -> Committed:
    """How far the sinks were when that epoch was done; they may be further by now."""
    return replace(committed, epoch=record.epoch, ended=record.last, begun=min(committed.begun, record.epoch))


def _known_epochs(address: str, epoch: int) -> Iterable[str]:
    coordinator = open_coordinator(address)
    try:
        return EpochLog(coordinator).exported(epoch)
    finally:
        coordinator.close()


def _named(shape: Mapping[str, Any], checkpoint: Path) -> tuple[str, ...]:
    """The names of Spark's numbers; those that the shape does not know stand for themselves."""
    ids = operator_ids(checkpoint)
    names = shape.get("state ids", [])
    return tuple(names) if len(names) == len(ids) else tuple(f"operator {number}" for number in ids)


def _files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def list_snapshots(state: StateFolder) -> list[Manifest]:
    """All of them, oldest first."""
    found = [read_manifest(path.parent) for path in state.snapshots.glob(f"*/{MANIFEST}") if path.parent.name[0] != "."]
    return sorted(found, key=lambda manifest: (manifest.taken, manifest.epoch))


def find_snapshot(state: StateFolder, name: str) -> Manifest:
    """The snapshot of that name; raises CoordinationError that lists what there is."""
    if not (state.snapshots / check_name(name) / MANIFEST).exists():
        there = ", ".join(each.name for each in list_snapshots(state)) or "none; take one with `penstock checkpoint`"
        raise CoordinationError(f"there is no checkpoint '{name}' in {state.snapshots}; there are: {there}")
    return read_manifest(state.snapshots / name)


def delete_snapshot(state: StateFolder, name: str) -> None:
    """Remove a snapshot; raises CoordinationError when there is none of that name."""
    find_snapshot(state, name)
    (state.snapshots / name / MANIFEST).unlink()
    shutil.rmtree(state.snapshots / name)
