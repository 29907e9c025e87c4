"""A virtual environment for each peer, made once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from side_by_side.contestants import Contestant
from side_by_side.telling import Tell

_PATIENCE_SECONDS = 1800.0
_REASON_CHARACTERS = 300


class NotInstalled(Exception):
    """Why a peer cannot be had here."""


def environments_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / "peers"


def python_of(contestant: Contestant, tell: Tell) -> Path:
    """The Python that has the contestant installed; raises NotInstalled.

    An environment counts once it is whole: one that was being made when somebody lost patience is made anew, and so is
    one for other versions.
    """
    if not contestant.requirements:
        return Path(sys.executable)
    folder = environments_folder() / contestant.name
    python, ready = folder / "bin" / "python", folder / ".ready"
    wanted = " ".join(contestant.requirements)
    if ready.exists() and ready.read_text() == wanted:
        return python
    tell(f"{contestant.shown}: installing {wanted} into {folder}; once, it may take some minutes")
    shutil.rmtree(folder, ignore_errors=True)
    _call([sys.executable, "-m", "venv", str(folder)])
    _call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *contestant.requirements])
    ready.write_text(wanted)
    return python


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        errors = [line for line in said if "error" in line.lower()]
        raise NotInstalled((errors or said)[0][:_REASON_CHARACTERS])
