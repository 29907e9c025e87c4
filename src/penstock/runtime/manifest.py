"""What is in a snapshot or a backup, file by file: so that one that is not whole is recognised."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from penstock.errors import CoordinationError

MANIFEST = "manifest"
CHECKPOINT = "checkpoint"
COMMITTED = "committed"
SHAPE = "shape"
EPOCHS = "epochs"

Look = Callable[[int, int], None]
"""Is told how many bytes are done, and of how many."""

_BLOCK = 1 << 20
_MOST_NAMED = 10


@dataclass(frozen=True)
class Contained:
    """What the manifest says of a file."""

    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class Manifest:
    """What a snapshot is, and every file in it."""

    name: str
    topology: str
    epoch: int
    batch: int
    """Spark's micro-batch of that epoch."""
    taken: str
    """When, in ISO 8601."""
    instances: int
    """Into how many parts the state is divided."""
    state_ids: tuple[str, ...]
    """The operators' names, at the place of the number that Spark gives their state."""
    files: Mapping[str, Contained] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        fields = json.loads(text)
        files = {name: Contained(**file) for name, file in fields.pop("files").items()}
        return cls(files=files, state_ids=tuple(fields.pop("state_ids")), **fields)


def read_manifest(folder: Path) -> Manifest:
    """What a folder says that it holds; raises CoordinationError when it is no snapshot or a half-copied one."""
    if not folder.is_dir():
        raise CoordinationError(f"there is no folder {folder}")
    try:
        return Manifest.from_json((folder / MANIFEST).read_text())
    except FileNotFoundError:
        half = (folder / CHECKPOINT).exists() or (folder / SHAPE).exists()
        why = (f"'{MANIFEST}' is missing, which is written last: it was copied only in part" if half
               else "it was not made by `penstock backup`")
        raise CoordinationError(f"{folder} is no backup: {why}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise CoordinationError(f"{folder / MANIFEST} cannot be read: {error}; copy the backup again") from error


def check_whole(folder: Path, manifest: Manifest, look: Look = lambda done, whole: None) -> None:
    """Raises CoordinationError that names the files that are missing, cut short, or not what they were."""
    wrong: list[str] = []
    done = 0
    for name, file in manifest.files.items():
        path = folder / name
        if not path.is_file():
            wrong.append(f"{name} is missing")
        elif path.stat().st_size != file.size:
            wrong.append(f"{name} has {path.stat().st_size:,} bytes instead of {file.size:,}")
        elif file.sha256 is not None and _digest(path) != file.sha256:
            wrong.append(f"{name} is not what was copied")
        done += file.size
        look(done, manifest.size)
    if wrong:
        listed = "\n".join(f"  {each}" for each in wrong[:_MOST_NAMED])
        more = f"\n  and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise CoordinationError(f"{folder} is not whole; copy the backup again:\n{listed}{more}")


def copy_snapshot(folder: Path, target: Path, look: Look = lambda done, whole: None) -> Manifest:
    """Copy a snapshot to a folder that is empty or not there yet; the manifest comes last, with digests."""
    manifest = read_manifest(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CoordinationError(f"{target} is not empty; choose another folder")
    done = 0
    files: dict[str, Contained] = {}
    for name, file in manifest.files.items():
        files[name] = Contained(file.size, _copy(folder / name, target / name))
        done += file.size
        look(done, manifest.size)
    copied = replace(manifest, files=files)
    draft = target / f".{MANIFEST}"
    draft.write_text(copied.to_json())
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    draft.rename(target / MANIFEST)
    return copied


def _copy(source: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with source.open("rb") as read, target.open("wb") as write:
        while block := read.read(_BLOCK):
            digest.update(block)
            write.write(block)
        write.flush()
        os.fsync(write.fileno())
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
