"""Have a replica that is starting leave the processors to its siblings, which deliver meanwhile.

Spark needs some ten seconds of processor time to start. On a small machine that would be felt in the output.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from contextlib import suppress

from penstock.epochs.moments import PROCESSES, processes_of

_NICE = 5
"""Enough to be felt, and not so much that a busy machine starves it: until it is up, the topology is less safe."""
_HIGHEST = 20
"""The limit with which a process may have its priority raised to the ordinary one."""
_ROUNDS = 5


def can_be_raised() -> bool:
    """Whether what is lowered can be raised again, which not every user may do."""
    return PROCESSES.is_dir() and (os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= _HIGHEST)


def lowered(command: Sequence[str]) -> list[str]:
    """The command, for a process that comes after all others."""
    return ["nice", "-n", str(_NICE), *command]


def raise_session(session: int) -> None:
    """From now on its processes are as important as others."""
    ordinary = os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(_ROUNDS):
        # A thread that is started meanwhile has the priority of the one that starts it.
        behind = [thread for thread in _threads(session) if _priority(thread) > ordinary]
        if not behind:
            return
        for thread in behind:
            with suppress(ProcessLookupError, PermissionError):
                os.setpriority(os.PRIO_PROCESS, thread, ordinary)


def _threads(session: int) -> list[int]:
    found: list[int] = []
    for process in processes_of(session):
        with suppress(OSError):
            found += [int(entry.name) for entry in (PROCESSES / str(process.pid) / "task").iterdir()]
    return found


def _priority(thread: int) -> int:
    try:
        return os.getpriority(os.PRIO_PROCESS, thread)
    except ProcessLookupError:
        return 0
