"""Which files of Spark's checkpoint hold the state after a micro-batch, and how they are put elsewhere.

    offsets/<batch>, commits/<batch>          what each micro-batch read, and that it is done
    state/<operator>/_metadata/…              what kind of state it is
    state/<operator>/<partition>/[<store>/]   the state itself, by version; after batch n it has version n + 1
        <version>.zip, SSTs/*, logs/*         RocksDB as a whole; versions share the files beside the zip
        <version>.changelog                   what one version changed

Spark writes each file under another name and renames it, and never changes it afterwards. So the state after a
committed batch can be linked while the stream goes on; only its retention may take files away meanwhile.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.errors import CoordinationError

_VERSIONED = re.compile(r"(\d+)\.(zip|changelog)")
_SCHEMA_PATHS = "stateSchemaFilePaths"
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_BATCHES_KEPT = 2
"""Spark looks at the newest batch and at the one before it."""


def newest_committed(checkpoint: Path) -> int | None:
    """The newest micro-batch that is done, offsets and all; None when there is none."""
    done = _numbers(checkpoint / "commits") & _numbers(checkpoint / "offsets")
    return max(done, default=None)


def files_after(checkpoint: Path, batch: int) -> list[Path]:
    """The files, relative to the checkpoint, that Spark needs to go on after a committed batch.

    Raises FileNotFoundError when retention has taken one of them away.
    """
    files = [Path("metadata")]
    for log in ("offsets", "commits"):
        kept = [number for number in sorted(_numbers(checkpoint / log)) if number <= batch][-_BATCHES_KEPT:]
        files += [Path(log, str(number)) for number in kept]
    partitions = state_partitions(checkpoint, batch)
    for operator in operator_ids(checkpoint):
        folder = Path("state", str(operator))
        files += _metadata_files(checkpoint, folder, batch)
        for partition in range(partitions):
            for store in _stores(checkpoint, folder / str(partition)):
                files += _store_files(checkpoint, store, batch + 1)
    return files


def can_go_back(checkpoint: Path) -> bool:
    """Whether the state before the newest committed batch is there, too; after a rescale or a restore it is not."""
    newest = newest_committed(checkpoint)
    if not newest:
        return newest == 0
    try:
        return bool(files_after(checkpoint, newest - 1))
    except FileNotFoundError:
        return False
    except zipfile.BadZipFile:
        # It is there, if damaged; further back there may be a sound one.
        return True


def operator_ids(checkpoint: Path) -> list[int]:
    """The numbers under which Spark keeps state, in order; none for a topology without state."""
    return sorted(_numbers(checkpoint / "state"))


def operator_metadata(checkpoint: Path, operator: int) -> dict[str, Any]:
    """What Spark notes of one operator's state: the operator's own name for it, its stores."""
    folder = checkpoint / "state" / str(operator) / "_metadata"
    versioned = sorted(_numbers(folder / "v2"))
    file = folder / "v2" / str(versioned[-1]) if versioned else folder / "metadata"
    found: dict[str, Any] = json.loads(file.read_text().split("\n", 1)[1])
    return found


def state_partitions(checkpoint: Path, batch: int) -> int:
    """Into how many parts the state is divided after a batch."""
    return int(offset_metadata(checkpoint, batch)["conf"]["spark.sql.shuffle.partitions"])


def offset_metadata(checkpoint: Path, batch: int) -> dict[str, Any]:
    """What Spark notes beside the offsets of a batch."""
    found: dict[str, Any] = json.loads((checkpoint / "offsets" / str(batch)).read_text().splitlines()[1])
    return found


def link_checkpoint(checkpoint: Path, batch: int, target: Path, read_at: Path) -> list[Path]:
    """Put what is needed to go on after a batch into a new folder; the files in it, relative.

    They are linked where the disk allows it and copied otherwise. `read_at` is where Spark will find them: some of its
    notes name whole paths. Raises FileNotFoundError when retention was faster: choose a newer batch.
    """
    files = files_after(checkpoint, batch)
    for file in files:
        link_or_copy(checkpoint / file, target / file)
    relocate(target, read_at)
    return files


def keep_newest(checkpoint: Path, read_at: Path) -> None:
    """Leave in a checkpoint only what its newest committed batch needs."""
    newest = newest_committed(checkpoint)
    assert newest is not None, f"{checkpoint} has no committed batch"
    whole = checkpoint.with_name(f".{checkpoint.name}-whole")
    checkpoint.rename(whole)
    link_checkpoint(whole, newest, checkpoint, read_at)
    shutil.rmtree(whole)


def relocate(checkpoint: Path, read_at: Path) -> None:
    """Let the paths in Spark's notes lead to where the checkpoint will be."""
    for note in checkpoint.glob("state/*/_metadata/v2/*"):
        version, text = note.read_text().split("\n", 1)
        changed = _with_schema_paths(json.loads(text), read_at)
        write_anew(note, f"{version}\n{json.dumps(changed, separators=(',', ':'))}")


def write_anew(file: Path, text: str) -> None:
    """Write a file that may be a link: the other names keep what they have."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(text)
    draft.replace(file)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file in another place, without copying where the disk can."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target)


def size_of_state(checkpoint: Path, operator: int, batch: int) -> int:
    """The bytes on disk that hold an operator's state after a batch."""
    folder = Path("state", str(operator))
    stores = (store for number in range(state_partitions(checkpoint, batch))
              for store in _stores(checkpoint, folder / str(number)))
    return sum((checkpoint / file).stat().st_size for store in stores
               for file in _store_files(checkpoint, store, batch + 1))


def _with_schema_paths(metadata: dict[str, Any], read_at: Path) -> dict[str, Any]:
    stores = [
        {**store, _SCHEMA_PATHS: [_moved(path, read_at) for path in store[_SCHEMA_PATHS]]}
        if _SCHEMA_PATHS in store else store
        for store in metadata.get("stateStoreInfo", [])
    ]
    return {**metadata, "stateStoreInfo": stores}


def _moved(path: str, read_at: Path) -> str:
    """`…/state/0/_stateSchema/…` as seen from the new place, whatever the names before it."""
    _, mark, rest = path.rpartition("/state/")
    return f"file:{read_at}{mark}{rest}" if mark else path


def _numbers(folder: Path) -> set[int]:
    if not folder.is_dir():
        return set()
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()}


def _metadata_files(checkpoint: Path, folder: Path, batch: int) -> Iterator[Path]:
    """What describes an operator's state: notes of its own, and those that lie in its first partition."""
    for notes in ("_metadata", "_stateSchema", "0/_metadata"):
        for file in sorted((checkpoint / folder / notes).rglob("*")):
            later = file.parent.name == "v2" and file.name.isdigit() and int(file.name) > batch
            if file.is_file() and not file.name.startswith(".") and not later:
                yield file.relative_to(checkpoint)
    for store in _stores(checkpoint, folder / "0"):
        if store != folder / "0":
            for file in sorted((checkpoint / store / "_metadata").rglob("*")):
                if file.is_file() and not file.name.startswith("."):
                    yield file.relative_to(checkpoint)


def _stores(checkpoint: Path, partition: Path) -> Iterator[Path]:
    """The folders with versions: the partition itself, or one for each of its stores."""
    folder = checkpoint / partition
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such partition of the state", str(folder))
    inside = [entry.name for entry in sorted(folder.iterdir()) if entry.is_dir() and not entry.name.startswith("_")]
    named = [name for name in inside if name not in ("SSTs", "logs")]
    if any(_VERSIONED.fullmatch(entry.name) for entry in folder.iterdir()) or not named:
        yield partition
    yield from (partition / name for name in named)


def _store_files(checkpoint: Path, store: Path, version: int) -> Iterator[Path]:
    """The newest whole copy up to that version, and every change after it."""
    names = [entry.name for entry in (checkpoint / store).iterdir() if entry.suffix in (".zip", ".changelog")]
    for name in names:
        if not _VERSIONED.fullmatch(name):
            raise CoordinationError(
                f"{checkpoint / store / name} is not in a form of state that Penstock can copy; leave Spark's "
                "settings for state stores as they are"
            )
    wholes = {int(name.removesuffix(".zip")) for name in names if name.endswith(".zip")}
    first = max((whole for whole in wholes if whole <= version), default=0)
    if first:
        yield store / f"{first}.zip"
        yield from (store / file for file in _shared_files(checkpoint / store / f"{first}.zip"))
    for number in range(first + 1, version + 1):
        changes = store / f"{number}.changelog"
        if not (checkpoint / changes).exists():
            raise FileNotFoundError(errno.ENOENT, "taken away by Spark's retention", str(checkpoint / changes))
        yield changes


def _shared_files(whole: Path) -> Iterator[Path]:
    with zipfile.ZipFile(whole) as archive:
        metadata = json.loads(archive.read("metadata").decode().split("\n", 1)[1])
    for file in metadata.get("sstFiles") or ():
        yield Path("SSTs", file["dfsSstFileName"])
    for file in metadata.get("logFiles") or ():
        yield Path("logs", file["dfsLogFileName"])
