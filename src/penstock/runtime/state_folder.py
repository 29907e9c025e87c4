"""The folder where a topology keeps what it must remember between two starts.

    .penstock/<topology>/
      coordinator.sqlite   the embedded coordinator: the epoch log
      checkpoint/          Spark's offset log, commit log and state
      committed            the last epoch whose sinks are committed
      shape                what of the topology the checkpoint depends on
      holder               who is running it, locked while it runs
      rescale-*            what a command asks the run for, see `runtime.rescale_request`
      replicas/<name>/     the same of each replica, where there are several
      snapshots/           named snapshots, see `runtime.snapshots`
      restored             what a restore has left for the next start to do
      history              how often the topology was begun anew, where its replicas are on several nodes
      prepared/, ready/    new files that are about to replace the old ones, see `runtime.swap`
      recent/              states that one epoch's tasks hand to the next, see `spark.recent_states`
      malformed/           malformed records on their way to the driver
      logs/                Spark's log and what custom code printed
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock.errors import ConnectorError, CoordinationError
from penstock.topology.model import Topology

FOLDER = ".penstock"
_REPLICAS = "replicas"

_LINGER_SECONDS = 30.0
"""How long the JVM of a killed run may take to end: it may be writing the class archive."""
COMMAND_SECONDS = 150.0
"""How long a replica waits for a command that is at its state, to divide it say: a supervisor starts it at once."""
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Committed:
    """How far the sinks are."""

    epoch: int = 0
    ended: bool = False
    """True when the last epoch of a bounded input is committed."""
    begun: int = 0
    """With at-most-once, the last epoch whose delivery was begun: it is never begun again."""
    lost_epochs: int = 0
    lost_tuples: int = 0
    """What at-most-once has cost so far: tuples of epochs that were in flight at a crash."""


@dataclass(frozen=True)
class ToRestore:
    """What the first start after a restore does: it is the next to hold the folder and the coordinator."""

    sinks: Sequence[str] = ()
    """The sinks whose output begins anew."""
    epochs: Sequence[str] = ()
    """What the epoch log is to know, as `EpochLog.exported` gives it."""
    forget: bool = False
    """Whether what the epoch log knows is of another history, and is forgotten first."""


class UnusableState(ConnectorError):
    """The disk with a state folder fails, is full or may only be read, or what is on it is damaged."""


@dataclass(frozen=True)
class StateFolder:
    """The paths of one topology's state."""

    path: Path

    @classmethod
    def of(cls, topology: Topology, override: Path | None = None) -> StateFolder:
        return cls(override or topology.folder.absolute() / FOLDER / topology.name)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def coordinator(self) -> str:
        """The address of the embedded coordinator."""
        return f"sqlite:{self.path / 'coordinator.sqlite'}"

    def coordinator_for(self, topology: Topology, given: str | None) -> str:
        """The coordinator's address: what the user gave, or the embedded one."""
        return self.coordinator_of(topology.name, given)

    def coordinator_of(self, topology: str, given: str | None) -> str:
        """The same, by the topology's name."""
        if given is None:
            return self.coordinator
        # One server serves many topologies; a file serves one.
        return f"{given.rstrip('/')}/{topology}" if given.startswith("zookeeper:") else given

    @property
    def shape(self) -> Path:
        return self.path / "shape"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def restored(self) -> Path:
        return self.path / "restored"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def replica(self, name: str) -> StateFolder:
        """The folder of one replica, where there are several."""
        return StateFolder(self.path / _REPLICAS / name)

    def replicas(self) -> dict[str, StateFolder]:
        """By replica, the folders that there are."""
        return {path.name: StateFolder(path) for path in sorted((self.path / _REPLICAS).glob("*"))}

    def furthest(self) -> StateFolder:
        """Where the newest epoch is: here, or with the replica that has come furthest.

        One whose disk fails is passed over. Raises UnusableState when none of the others has come to an epoch: nobody
        knows then that there was none.
        """
        every = (self, *self.replicas().values())
        best = max(every, key=lambda each: each.readable().epoch)
        return best if best.readable().epoch else max(every, key=lambda each: each.committed().epoch)

    def forget_replicas(self) -> None:
        shutil.rmtree(self.path / _REPLICAS, ignore_errors=True)

    def committed(self) -> Committed:
        """What the last run left; nothing when there was none. Raises UnusableState when it cannot be read."""
        file = self.path / "committed"
        try:
            return Committed(**json.loads(file.read_text()))
        except FileNotFoundError:
            return Committed()
        except OSError as error:
            raise UnusableState(
                f"{file} says how far its run has come, and cannot be read ({error.strerror}): see to its disk"
            ) from error
        except (ValueError, TypeError) as error:
            raise UnusableState(
                f"{file} is damaged, perhaps since the machine lost power ({error}): put back a copy of {self.path}, "
                "or move that folder away to begin anew"
            ) from error

    def readable(self) -> Committed:
        """The same for somebody else, who can do without: nothing also when it cannot be read."""
        try:
            return self.committed()
        except UnusableState:
            return Committed()

    def committed_at(self) -> float:
        """When that was written, in seconds since 1970; 0 when nothing was."""
        try:
            return (self.path / "committed").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def record(self, committed: Committed) -> None:
        self.write_whole("committed", json.dumps(committed.__dict__))

    def write_shape(self, shape: str) -> None:
        self.write_whole("shape", shape)

    def write_whole(self, name: str, text: str) -> None:
        """Write a file of the folder: never half of it, also on a full disk."""
        temporary = self.path / f".{name}"
        temporary.write_text(text)
        temporary.replace(self.path / name)

    def clear(self, coordinator: bool = True) -> None:
        """Forget everything but the logs, the replicas and the named snapshots; and but for the coordinator's file,
        where that is in use already."""
        for name in ("checkpoint", "malformed", "failures", "rounds", "recent", "prepared", "ready", "discarded"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        forgotten = ["committed", ".committed", "shape", "restored", *(["coordinator.sqlite*"] if coordinator else [])]
        for pattern in (*forgotten, "stop-*", "rescale-*", "coordinator-away-*", "held-*", "received-*"):
            for file in self.path.glob(pattern):
                file.unlink()

    def to_restore(self) -> ToRestore:
        """What a restore has left for the next start to do; nothing when there was none."""
        try:
            return ToRestore(**json.loads(self.restored.read_text()))
        except FileNotFoundError:
            return ToRestore()

    def history(self) -> int | None:
        """Of which history this is, where several nodes have one in common; None: nobody has said so."""
        try:
            return int((self.path / "history").read_text())
        except FileNotFoundError:
            return None

    def note_history(self, history: int) -> None:
        """From now on this is of that history: what there was of the one before is gone."""
        self.write_whole("history", str(history))

    def running(self) -> int | None:
        """The process that is running the topology; None when it is not running."""
        try:
            file = (self.path / "holder").open("r+")
        except FileNotFoundError:
            return None
        with file:
            if _locked(file):
                fcntl.flock(file, fcntl.LOCK_UN)
                return None
            found = re.match(r"process (\d+)", file.read())
            return int(found[1]) if found else None

    @contextmanager
    def held(self, patience: float = 0.0) -> Iterator[int]:
        """Hold the folder for one run; raises CoordinationError that says who has it, UnusableState if nobody can.

        One that lives is waited for as long as `patience` says, in seconds.
        Gives the lock's file descriptor. The lock is the operating system's: it goes with the last process that has
        this open, however that ends. The JVM inherits it, so that the next start waits for a JVM that outlives
        its killed driver, and never shares a checkpoint with it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "holder").open("a+")
        except OSError as error:
            raise self._unusable(error) from error
        with file:
            began = lived = time.monotonic()
            while not _locked(file):
                file.seek(0)
                holder = file.read().strip() or "another process"
                lives, now = _lives(holder), time.monotonic()
                lived = now if lives else lived
                if (now - began >= patience) if lives else (now - lived > _LINGER_SECONDS):
                    raise CoordinationError(
                        f"this topology is running already ({holder}), with its state in {self.path}; "
                        "stop it first, or run with another --state"
                    )
                time.sleep(_PAUSE_SECONDS)
            try:
                # Without a buffer, which a full disk would not take when the file is closed, either.
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), f"process {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode())
            except OSError as error:
                raise self._unusable(error) from error
            try:
                yield file.fileno()
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _unusable(self, error: OSError) -> UnusableState:
        return UnusableState(f"{self.path} cannot be used for state: {error.strerror}; try --state")


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lives(holder: str) -> bool:
    """Whether the process that a holder's note names is there; yes when the note names none."""
    found = re.match(r"process (\d+)", holder)
    return found is None or is_alive(int(found[1]))


def is_alive(process: int) -> bool:
    """Whether a process of that number runs on this machine: one that has ended does not, also while its parent has
    not asked how."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
