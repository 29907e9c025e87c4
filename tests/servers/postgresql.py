"""A real PostgreSQL server for tests: its own data in a temporary folder, on loopback, killed for real.

PostgreSQL refuses to run as root, so under root it runs as the user `postgres` of the distribution's package.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..waiting import wait_until

PASSWORD = "s3cret-Pässwörd"
"""Of the superuser `penstock`; not ASCII, and nothing that could stand in a message by chance."""

_START_SECONDS = 60
_INSTALLATIONS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin",
                  "/usr/local/opt/postgresql*/bin")


def server_programs() -> Path:
    """The folder of `initdb` and `postgres`; under root they are installed when they are missing."""
    found = _find_programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "postgresql"]):
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
        found = _find_programs()
    if found is None:
        raise RuntimeError("these tests need a PostgreSQL server, and there is no initdb on this machine: "
                           "install one (Debian: apt-get install postgresql)")
    return found


def _find_programs() -> Path | None:
    folders = [folder for pattern in _INSTALLATIONS for folder in Path("/").glob(pattern.lstrip("/"))]
    newest = sorted((folder for folder in folders if (folder / "initdb").exists()), key=_version)
    if newest:
        return newest[-1]
    in_path = shutil.which("initdb")
    return Path(in_path).resolve().parent if in_path else None


def _version(programs: Path) -> int:
    digits = "".join(letter for letter in programs.parent.name if letter.isdigit())
    return int(digits or 0)


class PostgresServer:
    """One server with its own data. `start` and `stop` it; `kill` is what a power cut does."""

    def __init__(self, folder: Path) -> None:
        self._programs = server_programs()
        self._data = folder / "data"
        self._log = folder / "log"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._initialise(folder)

    def url(self, database: str = "postgres", user: str = "penstock", password: str = PASSWORD) -> str:
        """The address as a user writes it in a topology."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, or start it again after `kill`; returns when it answers."""
        assert self._process is None, "it is running"
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port),
             "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
            stdin=subprocess.DEVNULL, stdout=self._log.open("ab"), stderr=subprocess.STDOUT,
            start_new_session=True, cwd="/", **self._identity)
        started = self._process
        try:
            wait_until(self._answers, _START_SECONDS, lambda: started.poll() is None,
                       lambda: self._log.read_text(errors="replace")[-3000:])
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """`kill -9` to the server and to every process it has started, all at once."""
        if self._process is not None:
            children = _children(self._process.pid)
            self._process.kill()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self._process.wait()
            self._process = None
            wait_until(lambda: not any(map(_is_alive, children)), _START_SECONDS)
            # One that was started between the list and the blow has the port open for as long as it lives.
            wait_until(lambda: not _takes_connections(self.port), _START_SECONDS)

    def stop_immediately(self) -> None:
        """`pg_ctl stop -m immediate`: it drops everything and recovers at the next start."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Shut it down properly, disconnecting whoever is there."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(_START_SECONDS)
                self._process = None
            except subprocess.TimeoutExpired:
                self.kill()

    def _initialise(self, folder: Path) -> None:
        secret = folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        subprocess.run(
            [str(self._programs / "initdb"), "-D", str(self._data), "-U", "penstock", "-E", "UTF8",
             "--locale=C", "--auth=scram-sha-256", f"--pwfile={secret}"],
            check=True, capture_output=True, timeout=120, cwd="/", **self._identity)

    def _answers(self) -> bool:
        ready = subprocess.run(
            [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return ready.returncode == 0


@contextmanager
def running_postgresql() -> Iterator[PostgresServer]:
    """A new server that answers; it and its data are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgresql-"))
    try:
        server = PostgresServer(folder)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _takes_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], check=False, capture_output=True, text=True)
    return [int(line) for line in listed.stdout.split()]


def _is_alive(process: int) -> bool:
    """Not when it is dead and only waits for somebody to ask how it ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
