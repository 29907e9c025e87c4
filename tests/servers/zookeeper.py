"""A real ZooKeeper server on loopback, started from the jars that pyspark ships; killed and restarted at will."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ..waiting import wait_until

_PATIENCE_SECONDS = 60.0
_TICK_MS = 500
"""ZooKeeper gives no session less than two ticks to live, and no more than twenty."""


class ZookeeperServer:
    """One server process over one data folder; the port stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        (folder / "data").mkdir(parents=True)
        settings = {
            "tickTime": _TICK_MS,
            "dataDir": folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok",
        }
        (folder / "zoo.cfg").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        jars = Path(pyspark.__file__).parent / "jars"
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [_java(), "-Xmx256m", "-cp", f"{jars}/*", "org.apache.zookeeper.server.ZooKeeperServerMain",
                 str(self._folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        started = self._process
        try:
            wait_until(self._answers, _PATIENCE_SECONDS, lambda: started.poll() is None,
                       lambda: (self._folder / "server.log").read_text()[-2000:])
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """kill -9: what was acknowledged is on disk, and nothing else."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Killed for the time of the block, and started again whatever happens in it."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def freeze(self) -> None:
        """SIGSTOP: the port takes connections, and nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # A thread that is just answering stops a moment later.
        threads = Path(f"/proc/{self._process.pid}/task")
        wait_until(lambda: all("T" in _state(thread) for thread in threads.iterdir()))

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"ruok")
                return connection.recv(16) == b"imok"
        except OSError:
            return False


def _state(thread: Path) -> str:
    """The letter of a thread's state; one that has just ended counts as stopped."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "T"


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[ZookeeperServer]:
    """A server that is running, and is gone afterwards whatever happens."""
    server = ZookeeperServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin/java") if home else shutil.which("java")
    if found is None:
        raise RuntimeError("ZooKeeper needs Java: put it on the PATH or set JAVA_HOME")
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
