"""Processes that hold a state folder as a run does, and say when they are told to end."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.runtime.state_folder import StateFolder

_HOLDER = """
import fcntl, os, signal, sys
told = lambda *_: os.write(1, b"told\\n")
signal.signal(signal.SIGTERM, told)
# Whatever came before it is told first.
signal.signal(signal.SIGWINCH, lambda *_: os._exit(0))
file = open(sys.argv[1], "a+")
fcntl.flock(file, fcntl.LOCK_EX)
file.write(f"process {os.getpid()} since now")
file.flush()
print("holds", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def holder_of(state: StateFolder) -> Iterator[subprocess.Popen[str]]:
    """Whoever runs a topology or a replica; it goes on although it is told to end."""
    state.path.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(state.path / "holder")], stdout=subprocess.PIPE,
                          text=True) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def await_told(process: subprocess.Popen[str]) -> None:
    """Until it is told to end."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 10)[0], "nobody has told it"
    assert process.stdout.readline() == "told\n"


def times_told(process: subprocess.Popen[str]) -> int:
    """How often it was told to end, but for those times that were awaited; it is gone after that."""
    process.send_signal(signal.SIGWINCH)
    return process.communicate(timeout=10)[0].count("told")
