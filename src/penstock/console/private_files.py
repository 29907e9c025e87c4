"""Files that only their owner can read: what was set for a topology may be a password."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

_OWNER_ONLY = 0o600


def private(path: str, flags: int) -> int:
    """For `open(…, opener=private)`: a file that is made is its owner's only, whatever the umask, and so is one from
    before."""
    file = os.open(path, flags, _OWNER_ONLY)
    try:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, _OWNER_ONLY)
    except PermissionError:
        # Another user's: it is up to that one.
        pass
    except BaseException:
        os.close(file)
        raise
    return file


def write_private(path: Path, content: bytes) -> None:
    """All of the file, or nothing: what a full disk has taken of it is removed again.

    Several may write the same one at a time: each has a draft of its own.
    """
    handle, name = tempfile.mkstemp(".draft", f".{path.name}.", path.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
