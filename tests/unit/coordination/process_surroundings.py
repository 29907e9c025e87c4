"""Surroundings made of real processes, for coordinators that more than one process can open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator

from ...waiting import PATIENCE_SECONDS
from .coordinator_conformance import Surroundings

_PROGRAM = Path(__file__).with_name("other_process.py")


class OtherProcess:
    """A process that runs `other_process.py`, and what it says."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, _PROGRAM, *arguments], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self._too_long = threading.Timer(PATIENCE_SECONDS * 2, self._process.kill)
        self._too_long.daemon = True
        self._too_long.start()

    def says(self) -> str:
        """Its next line; empty at its end."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        # Not waited for: a dead process that nobody has asked about counts as dead, too.
        self._process.kill()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def thaw_and_see_the_loss(self) -> None:
        self.thaw()
        assert self.says() == "expired"

    def end(self) -> int:
        """Let it finish, and wait for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait()

    def tear_down(self) -> None:
        self._too_long.cancel()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class ProcessSurroundings(Surroundings):
    """Whoever opens the URL, in this process or in another."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self._started: list[OtherProcess] = []

    def connect(self) -> Coordinator:
        return open_coordinator(self.url, self.ttl)

    def start(self, verb: str, name: str, detail: str) -> OtherProcess:
        process = OtherProcess(self.url, str(self.ttl), verb, name, detail)
        self._started.append(process)
        return process

    def start_owner(self, key: str, value: str) -> OtherProcess:
        owner = self.start("own", key, value)
        assert owner.says() == f"owns {value}"
        return owner

    def tear_down(self) -> None:
        super().tear_down()
        for process in self._started:
            process.tear_down()
