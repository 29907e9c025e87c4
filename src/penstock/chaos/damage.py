"""Damage to the files of a run that is not running: what a crash of the machine can leave behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.chaos.schedule import Act


@dataclass(frozen=True)
class Damage:
    """A damaged file and a sound copy of it."""

    file: Path
    copy: Path

    def put_back(self) -> None:
        shutil.copy2(self.copy, self.file)


def damage(act: Act, checkpoint: Path, copies: Path) -> Damage | None:
    """Do to the checkpoint what `act` says, and keep a copy in `copies`; None when there is no such file."""
    find, spoil = _WAYS[act]
    file = find(checkpoint)
    if file is None:
        return None
    copies.mkdir(parents=True, exist_ok=True)
    copy = copies / f"{len(list(copies.iterdir()))}-{file.name}"
    shutil.copy2(file, copy)
    spoil(file)
    return Damage(file, copy)


def newest_entry(log: Path) -> Path | None:
    """The entry with the highest number in one of Spark's logs."""
    entries = [file for file in log.glob("*") if file.name.isdigit()]
    return max(entries, key=lambda file: int(file.name), default=None)


def newest_state_file(checkpoint: Path) -> Path | None:
    """The file of Spark's state that was written last: a delta, a change log or a snapshot."""
    files = [file for file in (checkpoint / "state").rglob("*") if _is_state(file)]
    return max(files, key=lambda file: (file.stat().st_mtime_ns, str(file)), default=None)


def _is_state(file: Path) -> bool:
    return file.suffix in (".delta", ".changelog", ".zip", ".snapshot") and file.is_file()


def _cut_short(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


_WAYS: Mapping[Act, tuple[Callable[[Path], Path | None], Callable[[Path], None]]] = {
    Act.DELETE_COMMIT: (lambda checkpoint: newest_entry(checkpoint / "commits"), Path.unlink),
    Act.CORRUPT_OFFSETS: (lambda checkpoint: newest_entry(checkpoint / "offsets"), _cut_short),
    Act.CORRUPT_STATE: (newest_state_file, _cut_short),
}
