"""One start of `penstock run`, from its birth to its death, in a session of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.control.killing import signal_session
from penstock.epochs.moments import Victim, processes_of, victims

DIE_WITH_PARENT = "import ctypes; ctypes.CDLL(None).prctl(1, 9); "
"""The beginning of a Python program that must not outlive the process that starts it, not even a `kill -9`."""
PENSTOCK = (sys.executable, "-P", "-c", f"{DIE_WITH_PARENT}from penstock.cli.main import main; main()")
"""What `penstock` does, in this very Python, whether or not the command is in the PATH."""

_POLL_SECONDS = 0.02
_UNCLEAR = ("Traceback (most recent call last)", "An error occurred while calling o", "[STREAM_FAILED]")
"""What only somebody who knows Spark's inside can make sense of."""
_ROUNDS = 500
_BUSIEST = 3
"""Spark keeps idle Python processes too, which nobody would miss: a victim is one of so many that work most."""


class Session:
    """The processes of one session, as the operating system numbers it."""

    def __init__(self, session: int) -> None:
        self.session = session
        """The number of the driver, of its process group and of its session."""

    def at_work(self) -> bool:
        """Whether Spark is up and has Python workers."""
        return bool(victims(Victim.WORKER, self.session))

    def kill(self, victim: Victim, choice: float = 0.0) -> bool:
        """`kill -9` of one process; `choice` from 0 to 1 says which of several. False when there is none."""
        found = victims(victim, self.session)[:_BUSIEST]
        if not found:
            return False
        return _signalled(found[min(int(choice * len(found)), len(found) - 1)], signal.SIGKILL)

    def freeze(self) -> None:
        """Stop every process where it is."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def kill_all(self) -> None:
        """`kill -9` of everything, and wait until it is gone."""
        for _ in range(_ROUNDS):
            self._signal_all(signal.SIGKILL)
            if self._is_gone():
                return
            time.sleep(_POLL_SECONDS)

    def survivors(self) -> int:
        """How many processes are left of it."""
        return len(processes_of(self.session))

    def _is_gone(self) -> bool:
        return not self.survivors()

    def _signal_all(self, number: signal.Signals) -> None:
        signal_session(self.session, number)


class Life(Session):
    """A process and everything it starts. Its output goes to two files, which outlive it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start `command`; `log` with the endings .out and .err takes what it says."""
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.with_suffix(".out").open("wb") as out, log.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True)  # fmt: skip
        super().__init__(self._process.pid)
        self.born = time.monotonic()

    def code(self) -> int | None:
        """How the driver ended; None while it lives."""
        return self._process.poll()

    def said(self) -> str:
        """What it has written to standard error."""
        return self._log.with_suffix(".err").read_text(errors="replace")

    def terminate(self) -> bool:
        """SIGTERM to the driver, as a supervisor stops a service."""
        return self._process.poll() is None and _signalled(self.session, signal.SIGTERM)

    def freeze_for(self, seconds: float) -> None:
        """Stop every process where it is, and let it go on after a while."""
        try:
            self.freeze()
            time.sleep(seconds)
        finally:
            self.thaw()

    def _is_gone(self) -> bool:
        return self._process.poll() is not None and super()._is_gone()


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Look again and again; False when the condition does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def clear_error(said: str) -> str | None:
    """The error a run ended with, in its own words; None when it left a stack trace, Spark's words, or nothing."""
    if any(mark in said for mark in _UNCLEAR):
        return None
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    return lines[-1].removeprefix("error: ") if lines else None


def _signalled(pid: int, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
