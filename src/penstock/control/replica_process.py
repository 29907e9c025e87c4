"""The operating system's side of one replica: a process group that goes on without whoever started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.control.killing import kill_process
from penstock.control.priority import raise_own_session
from penstock.replication.roster import Member
from penstock.runtime.state_folder import StateFolder, is_alive

OWNER = "PENSTOCK_OWNER"
"""The environment variable with the process without which replicas have no purpose: that of a test, or of chaos."""
_LOOK_SECONDS = 1.0


def end_with_owner() -> None:
    """Where there is an owner, have this process and all of its group killed when the owner is gone."""
    owner = os.environ.get(OWNER, "")
    if not owner.isdigit():
        return

    def watch() -> None:
        while is_alive(int(owner)):
            time.sleep(_LOOK_SECONDS)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def rise_without_supervisor(home: StateFolder) -> None:
    """Have this process and its session raised when their supervisor is gone: nobody else would until the next one.

    It may have been made to leave the processors to a sibling. Who was started by hand has no supervisor to lose, and
    is in a session that is not its own.
    """
    if os.getsid(0) != os.getpid():
        return

    def watch() -> None:
        supervised = False
        while True:
            # What cannot be read now says nothing.
            with suppress(OSError):
                if home.running() is not None:
                    supervised = True
                elif supervised:
                    supervised = not raise_own_session()
            time.sleep(_LOOK_SECONDS)

    threading.Thread(target=watch, name="penstock-supervised", daemon=True).start()


class ReplicaProcess:
    """A replica that this process has started, or one that it found running."""

    def __init__(self, process: int, own: subprocess.Popen[bytes] | None = None, elsewhere: bool = False) -> None:
        self.process = process
        self._own = own
        self._elsewhere = elsewhere

    @classmethod
    def start(cls, command: Sequence[str], log: Path) -> ReplicaProcess:
        log.parent.mkdir(parents=True, exist_ok=True)
        # For its owner only: what a replica complains of may be a password.
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as said:
            # A session of its own: Ctrl-C and the end of the terminal are not for it.
            own = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        return cls(own.pid, own)

    @classmethod
    def found(cls, member: Member) -> ReplicaProcess:
        return cls(member.process, elsewhere=member.host != socket.gethostname())

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, where it can be seen and killed."""
        return not self._elsewhere

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, and for one that somebody else has started."""
        return None if self._own is None else self._own.poll()

    def is_alive(self) -> bool:
        if self._own is not None:
            return self._own.poll() is None
        return is_alive(self.process)

    def has_started(self, process: int) -> bool:
        """Whether that is this one, or came of it."""
        with suppress(ProcessLookupError):
            return self.process in (process, os.getsid(process))
        return False

    def stop(self) -> None:
        """Let it finish its epoch."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGTERM)

    def kill(self) -> None:
        """At once, with all its processes, also when it is frozen."""
        kill_process(self.process)
        if self._own is not None:
            self._own.wait()
