"""Have a replica leave the processors to its siblings: one that is starting, while they deliver; see `precedence`, too.

Spark needs some ten seconds of processor time to start, and as much again until its code is compiled. On a small
machine that would be felt in the output. Where Linux divides the processors by session (`autogroup`, usual on desktops
and on many servers), the niceness of a process only counts within its session: there the session has one of its own.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.epochs.moments import PROCESSES, processes_of

_NICE = 5
"""Enough to be felt, and not so much that a busy machine starves it: until it is up, the topology is less safe."""
LAST = 19
"""The niceness of what has time."""
_HIGHEST = 20
"""The limit with which a process may have its priority raised to the ordinary one."""
_ROUNDS = 5
_PAUSE_SECONDS = 0.12
_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def can_be_raised() -> bool:
    """Whether what is lowered can be raised again, which not every user may do everywhere."""
    return _sessions_count() or _threads_can_be_raised()


def lowered(command: Sequence[str]) -> list[str]:
    """The command, for a process that comes after all others; `lower_session` when it is started."""
    return ["nice", "-n", str(_NICE), *command] if _threads_can_be_raised() else list(command)


def lower_session(session: int, niceness: int = _NICE) -> bool:
    """From now on its processes come after those of other sessions; False: not now, try again."""
    if _sessions_count():
        return _set_session(session, niceness)
    if _threads_can_be_raised():
        _set_threads(session, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    return True


def raise_session(session: int) -> bool:
    """From now on its processes are as important as others; False: not now, try again."""
    _set_threads(session, os.getpriority(os.PRIO_PROCESS, 0))
    return _set_session(session, 0)


def raise_own_session() -> bool:
    """As `raise_session`, by a process of the session, which needs no right to; False: not now, try again.

    Only where sessions have a niceness: one that has lowered threads does not know what they had before.
    """
    return not _sessions_count() or _set_session(os.getpid(), 0)


def _sessions_count() -> bool:
    try:
        return _AUTOGROUP.read_text().strip() == "1" and (PROCESSES / "self" / "autogroup").exists()
    except OSError:
        return False


def _threads_can_be_raised() -> bool:
    return PROCESSES.is_dir() and (os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= _HIGHEST)


def _set_session(session: int, niceness: int) -> bool:
    """False: others were in the way."""
    for _ in range(_ROUNDS):
        try:
            (PROCESSES / str(session) / "autogroup").write_text(str(niceness))
            return True
        except BlockingIOError:
            # Linux takes ten of these a second, from everybody together.
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            # It is gone, or there is no such thing here.
            return True
    return False


def _set_threads(session: int, niceness: int) -> None:
    wanted = min(niceness, LAST)
    for _ in range(_ROUNDS):
        # A thread that is started meanwhile has the priority of the one that starts it.
        others = [thread for thread in _threads(session) if _priority(thread) not in (wanted, None)]
        if not others:
            return
        for thread in others:
            with suppress(ProcessLookupError, PermissionError):
                os.setpriority(os.PRIO_PROCESS, thread, wanted)


def _threads(session: int) -> list[int]:
    found: list[int] = []
    for process in processes_of(session):
        with suppress(OSError):
            found += [int(entry.name) for entry in (PROCESSES / str(process.pid) / "task").iterdir()]
    return found


def _priority(thread: int) -> int | None:
    """None: it is gone."""
    try:
        return os.getpriority(os.PRIO_PROCESS, thread)
    except ProcessLookupError:
        return None
