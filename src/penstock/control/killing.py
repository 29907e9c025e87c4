"""`kill -9` of a run or a replica, with everything that it has started."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from penstock.epochs.moments import PROCESSES, processes_of

_GONE_SECONDS = 5.0
"""One that the kernel does not let go of, as on a disk that does not answer, is not waited for any longer."""
_PAUSE_SECONDS = 0.02


def kill_process(process: int) -> None:
    """At once, also what is frozen. What led a session takes all of it, what leads a group its group.

    Also when it is gone itself: what it has started may outlive it. Spark's Python daemon is in no group but its own.
    """
    if signal_session(process, signal.SIGKILL):
        _see_off(process)
        return
    with suppress(ProcessLookupError):
        if os.getpgid(process) == process:
            os.killpg(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGKILL)


def signal_session(session: int, number: signal.Signals) -> bool:
    """Send it to every process of a session; False when there is none, or nobody can say."""
    found = processes_of(session) if PROCESSES.is_dir() else []
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
    return bool(found)


def _see_off(session: int) -> None:
    """Until all are gone: one may have started another between the look and the blow."""
    deadline = time.monotonic() + _GONE_SECONDS
    while signal_session(session, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
