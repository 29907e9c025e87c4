"""A small disk that can be filled up: a tmpfs, which takes root to mount."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

_BALLAST = "ballast"
_BLOCK = b"\0" * (1 << 20)


@dataclass(frozen=True)
class Disk:
    """Where a run writes; `refused` says why it cannot be filled up, and is empty when it can."""

    folder: Path
    refused: str = ""

    def fill(self) -> None:
        """Take all the room that is left; raises RuntimeError where that would be the room of everybody."""
        if not os.path.ismount(self.folder):
            raise RuntimeError(f"{self.folder} is no disk of its own, and is not filled up")
        with (self.folder / _BALLAST).open("wb", buffering=0) as ballast:
            for size in (len(_BLOCK), 4096, 1):
                _write_until_full(ballast, _BLOCK[:size])

    def free(self) -> None:
        (self.folder / _BALLAST).unlink(missing_ok=True)


def ordinary_disk(folder: Path) -> Disk:
    folder.mkdir(parents=True, exist_ok=True)
    return Disk(folder, "the disk is not a small one")


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Mount a disk of this size at `folder`; where that is not permitted, the folder is an ordinary one.

    Afterwards the folder holds what was written, without the mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    refused = _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "penstock-chaos", str(folder))
    if not refused and not os.path.ismount(folder):
        refused = "nothing was mounted"
    if refused:
        yield Disk(folder, f"a small disk could not be mounted ({refused}); run it as root")
        return
    copy = folder.with_name(f".{folder.name}.copy")
    try:
        yield Disk(folder)
        (folder / _BALLAST).unlink(missing_ok=True)
        shutil.copytree(folder, copy, symlinks=True, copy_function=_copy_if_there)
    finally:
        # Lazily: a process that was just killed may still have a file open.
        _run("umount", "--lazy", str(folder))
    folder.rmdir()
    copy.rename(folder)


def _copy_if_there(source: str, target: str) -> None:
    """What a process removes as it ends, as SQLite does, is missed by nobody."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target, follow_symlinks=False)


def _run(*command: str) -> str:
    """Run a command; what it complained of, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return (done.stderr.strip() or f"{command[0]} ended with {done.returncode}") if done.returncode else ""


def _write_until_full(ballast: FileIO, block: bytes) -> None:
    try:
        while ballast.write(block) == len(block):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
