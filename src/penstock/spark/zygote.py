"""A process that has imported everything and forks Spark's Python processes from itself.

For one query Spark starts half a dozen Python processes: to look for data sources, to create ours, to plan its
reading, to run its driver side, and to fork workers. Each would import Spark's and our modules again, which takes
longer than what it is asked to do. So Spark is given `launcher` instead of Python: a few lines that hand their
standard streams, arguments and environment to the zygote, which forks a child that carries on with them.

    Spark ──starts──► launcher ──Unix socket──► zygote ──forks──► the module Spark asked for

The launcher lives as long as that child does, and the child no longer than the launcher; the zygote dies with
the process that started it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol

_PRELOADED = (
    "pyarrow.compute",
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "penstock.spark.daemon",
)

_PREFIX = "penstock-zygote-"
_LEFTOVER_SECONDS = 24 * 3600.0

_LAUNCHER = """\
#!/bin/sh
exec {python} -IS {script} "$@"
"""

_HAND_OVER = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as link:
    try:
        if sys.argv[1:2] != ["-m"]:
            raise OSError("not a module")
        link.connect({address!r})
    except OSError:
        os.execv({python!r}, [{python!r}, *sys.argv[1:]])
    order = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(link, [len(order).to_bytes(4, "big")], [0, 1, 2])
    link.sendall(order)
    for number in (0, 1, 2):
        os.close(number)
    status = link.recv(4)
os._exit(int.from_bytes(status, "big") if status else 1)
"""


class Closable(Protocol):
    """What a child must not keep of the zygote's."""

    def close(self) -> None: ...


def clear_leftovers() -> None:
    """Remove what runs that were killed have left: folders a day old whose socket nobody listens to."""
    try:
        bound = {line.rpartition(" ")[2] for line in Path("/proc/net/unix").read_text().splitlines()}
    except OSError:
        return
    for address in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/socket"):
        with contextlib.suppress(OSError):
            if str(address) not in bound and address.stat().st_mtime < time.time() - _LEFTOVER_SECONDS:
                shutil.rmtree(address.parent, ignore_errors=True)


@cache
def zygote_launcher() -> str:
    """The path of a stand-in for this Python whose processes are forked from a zygote, started now if need be.

    The zygote is a new process, not a fork of this one: what is open here (a database, a lock, a thread in the
    middle of something) must not live on in Spark's workers. It gets ready while the JVM starts.
    """
    clear_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    # Nobody writes to it: its end tells the zygote that this process is gone.
    alive, kept = os.pipe()
    fds = (listener.fileno(), alive)
    command = [sys.executable, "-m", "penstock.spark.zygote", *map(str, fds)]
    # As Spark starts its workers: the hash of a text is the same in every process, also after a restart.
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, env=environment, process_group=0)
    listener.close()
    os.close(alive)
    os.set_inheritable(kept, False)
    script = folder / "hand_over.py"
    script.write_text(_HAND_OVER.format(address=address, python=sys.executable))
    launcher = folder / "python"
    launcher.write_text(_LAUNCHER.format(python=shlex.quote(sys.executable), script=shlex.quote(str(script))))
    launcher.chmod(0o700)
    return str(launcher)


def _become_zygote(listener: socket.socket, alive: int) -> None:
    """Serve until the parent is gone; never returns."""
    status = 1
    try:
        atexit._clear()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        # A lock on a file lasts as long as any process has it open: keep nothing of the parent's.
        first = 3
        for kept in sorted((listener.fileno(), alive)):
            os.closerange(first, kept)
            first = kept + 1
        os.closerange(first, os.sysconf("SC_OPEN_MAX"))
        for module in _PRELOADED:
            import_module(module)
        gc.collect()
        gc.freeze()
        _serve(listener, alive)
        status = 0
    finally:
        os._exit(status)


def _serve(listener: socket.socket, alive: int) -> None:
    selector = selectors.DefaultSelector()
    waker, woken = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    for item in (listener, woken, alive):
        selector.register(item, selectors.EVENT_READ)
    children: dict[int, socket.socket] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is alive:
                for child in children:
                    os.kill(child, signal.SIGTERM)
                return
            if key.fileobj is woken:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(1024)
                _reap(children, selector)
            elif key.fileobj is listener:
                link, _ = listener.accept()
                child = _fork_child(link, [selector, listener, waker, woken, *children.values()], alive)
                if child:
                    children[child] = link
                    selector.register(link, selectors.EVENT_READ)
            else:
                # The launcher was killed: so must be what it stands for, unless it has just been reaped.
                with contextlib.suppress(KeyError, ValueError):
                    selector.unregister(key.fileobj)
                for child, link in children.items():
                    if link is key.fileobj:
                        os.kill(child, signal.SIGTERM)


def _reap(children: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        link = children.pop(child)
        with contextlib.suppress(KeyError):
            selector.unregister(link)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            link.sendall((code if code >= 0 else 128 - code).to_bytes(4, "big"))
        link.close()


def _fork_child(link: socket.socket, others: list[Closable], alive: int) -> int:
    """The child's process id; 0 when the launcher was gone before it had said what it wants."""
    head, streams, _, _ = socket.recv_fds(link, 4, 3)
    size, order = int.from_bytes(head, "big"), b""
    while len(order) < size:
        part = link.recv(size - len(order))
        if not part:
            break
        order += part
    if len(streams) == 3 and size and len(order) == size:
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (link, *others):
                each.close()
            os.close(alive)
            _carry_on(streams, *json.loads(order))
    else:
        child = 0
        link.close()
    for stream in streams:
        os.close(stream)
    return child


def _carry_on(streams: list[int], arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Be the process that Spark asked for; never returns."""
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        _open_streams(unbuffered=bool(environment.get("PYTHONUNBUFFERED")))
        os.chdir(folder)
        known = set(sys.path)
        sys.path[1:1] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in known]
        sys.argv = arguments
        with warnings.catch_warnings():
            # That the module is imported already is the point.
            warnings.simplefilter("ignore", RuntimeWarning)
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as leaving:
        code = leaving.code
        status = code if isinstance(code, int) else int(code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)


def _open_streams(unbuffered: bool) -> None:
    """The standard streams as Python opens them; the parent's may be something else by now: a test's, a notebook's."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    plain = open(1, "wb", buffering=0 if unbuffered else -1, closefd=False)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(plain, write_through=unbuffered)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    _become_zygote(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
