"""Which process wrote something, so that others on the machine can tell when it is gone.

A process id alone will not do: ids are given out again. The mark adds the time at which the process was
started, and the machine and its process namespace, without which the id means nothing.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

_PROCESSES = Path("/proc")
_STATE, _STARTED = 0, 19
"""Fields of /proc/PID/stat, counted from behind the program's name."""


def since_start_of_machine() -> float:
    """Seconds by a clock that nobody sets, and that all processes of the machine share where there are marks."""
    # Python's monotonic clock stands while the machine sleeps; the others' clocks do not.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def mark_of_this_process() -> str:
    """The mark of the calling process; empty where the system does not tell."""
    try:
        return f"{_space()} {os.getpid()} {_status(os.getpid())[_STARTED]}"
    except OSError:
        return ""


def is_gone(mark: str) -> bool:
    """True when the process is certainly dead; False if it lives, or cannot be seen from here."""
    if not mark:
        return False
    space, pid, started = mark.split(" ")
    if space != _space():
        return False
    try:
        status = _status(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        return True
    except OSError:
        return False
    # A killed process whose parent has not looked yet is still listed, as a zombie.
    return status[_STARTED] != started or status[_STATE] in ("Z", "X")


def is_of_another_start(mark: str) -> bool:
    """Whether the machine was started anew since then, or it is another machine."""
    return bool(mark) and mark.partition("/")[0] != _space().partition("/")[0]


@cache
def _space() -> str:
    """The machine since its start, and the namespace in which process ids count."""
    boot = (_PROCESSES / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{(_PROCESSES / 'self/ns/pid').readlink()}"


def _status(pid: int) -> list[str]:
    # The program's name stands in brackets and may itself contain blanks and brackets.
    return (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
