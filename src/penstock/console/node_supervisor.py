"""The supervisor of a node: has the topologies run that belong here, does what it is told, and says what it sees.

Each topology has a process of its own that watches its replicas (`penstock run --supervised`). When this supervisor is
killed they go on; the next one finds them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.console.bundle import contents, digest_of, unpack
from penstock.console.desired import Desired, Wanted
from penstock.console.home import Begun, ConsoleHome, TopologyPlace
from penstock.console.nodes import Node, Nodes, Task
from penstock.console.tending import Act, There, decide, how_it_is
from penstock.console.topology_log import last_progress, last_words, shorten
from penstock.control.share import Share
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.errors import BundleError, ConsoleError, CoordinationError
from penstock.replication.roster import Roster
from penstock.replication.views import safety_of, views_of
from penstock.runtime.state_folder import StateFolder

LOOK_SECONDS = 0.5
SILENT_SECONDS = 5.0
"""A node that has said nothing for so long is away; what it said is shown as old."""
_COMMAND_SECONDS = 300.0
_TROUBLE_SECONDS = 5.0
_WRONG_TOPOLOGY = 2
_LAST_WORDS = 100_000
"""Of what a command has said: rows that were asked for, or an error."""
_OF_THE_CONSOLE = frozenset({"PENSTOCK_COORDINATOR", "PENSTOCK_TOKEN", "PENSTOCK_HOME", "PENSTOCK_CONSOLE"})
_AT_ONCE = 4
"""How many commands are carried out side by side: each is a Python process."""

Fetch = Callable[[str], bytes]
"""The bundle with a digest."""


@dataclass
class _Tended:
    """A topology of this node."""

    place: TopologyPlace
    there: There = field(default_factory=There)
    process: subprocess.Popen[bytes] | None = None
    """Its supervisor, where this process has started it."""
    why: str = ""
    """Why it ended, or does not start."""
    trouble: str = ""
    """Why another version was not put in place: the one before goes on."""
    busy: bool = False
    """Whether a command for it is being carried out."""
    refused: str = ""
    """The digest of a bundle that could not be had."""
    coordinator: Coordinator | None = None
    """The topology's own, once it was looked at."""
    not_before: float = 0.0
    """When to try again, where the machine did not let it."""


class NodeSupervisor:
    """One node; `run` until `stop`."""

    def __init__(self, node: Node, home: ConsoleHome, coordinator: Coordinator, fetch: Fetch,
                 say: Callable[[str], None] = lambda _: None, epoch_logs: str | None = None) -> None:  # fmt: skip
        """`epoch_logs` is the address of the coordinator for all topologies; None: each has a file of its own."""
        self.node = node
        self._epoch_logs = epoch_logs
        self._home = home
        self._coordinator = coordinator
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._fetch = fetch
        self._say = say
        self._tended: dict[str, _Tended] = {}
        self._commands = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-command")
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="penstock-question")
        self._taken: set[str] = set()
        """The tasks that were begun by this process: none is begun twice."""
        self._over = threading.Event()

    def join(self) -> None:
        """Sign in; raises NodeTaken when this node has a supervisor."""
        self._nodes.join(self.node)
        self._coordinator.on_expired(self._join_again)

    def run(self) -> None:
        """Until `stop`. The topologies go on without it."""
        self.find()
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.look()
            except CoordinationError:
                pass
            except Exception as error:
                # Whatever it is, the topologies of this node need somebody who looks after them.
                self._say(f"node {self.node.name}: {type(error).__name__}: {error}")
            self._over.wait(max(LOOK_SECONDS - (time.monotonic() - began), 0.05))
        self._commands.shutdown(wait=False, cancel_futures=True)
        self._questions.shutdown(wait=False, cancel_futures=True)
        for tended in self._tended.values():
            if tended.coordinator is not None:
                tended.coordinator.close()

    def stop(self) -> None:
        self._over.set()

    def find(self) -> None:
        """What still runs on this node since a supervisor before, wanted or not."""
        for path in sorted((self._home.nodes / self.node.name).glob("*/state")):
            if StateFolder(path).running() is not None:
                name = path.parent.name
                self._tended[name] = _Tended(self._home.topology(name, self.node.name))

    def look(self) -> None:
        """One look at what is wanted and what is there."""
        wanted = {each.name: each for each in self._desired.all() if self.node.name in each.nodes.values()}
        for name in [*self._tended, *(name for name in wanted if name not in self._tended)]:
            tended = self._tended.setdefault(name, _Tended(self._home.topology(name, self.node.name)))
            self._see(tended)
            if name not in wanted:
                self._let_go(name, tended)
                continue
            try:
                self._tend(wanted[name], tended)
            except CoordinationError:
                raise
            except Exception as error:
                # A full disk, for one: the others are tended all the same, and this one is tried again.
                said = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
                tended.why = f"node {self.node.name}: {said}"
                tended.not_before = time.monotonic() + _TROUBLE_SECONDS
            self._report(wanted[name], tended)
        for task in self._nodes.tasks(self.node.name):
            self._take(task, wanted.get(task.topology))

    def _join_again(self) -> None:
        # Its session was lost: frozen, or cut off from the coordinator. What it tends has gone on meanwhile.
        with contextlib.suppress(CoordinationError):
            self._nodes.join(self.node)

    # -- seeing ---------------------------------------------------------------------------------

    def _see(self, tended: _Tended) -> None:
        place, there = tended.place, tended.there
        shorten(place.log)
        if tended.process is not None and tended.process.poll() is not None:
            there = self._ended(tended, there)
        alive = tended.process is not None or place.state.running() is not None
        committed = place.state.furthest().committed()
        failures = 0 if committed.epoch > there.epoch else there.failures
        tended.there = replace(there, begun=place.begun(), alive=alive, epoch=committed.epoch, ended=committed.ended,
                               failures=failures, stopping=there.stopping and alive)  # fmt: skip

    def _ended(self, tended: _Tended, there: There) -> There:
        assert tended.process is not None
        code, tended.process = tended.process.returncode, None
        if code == 0 or there.stopping:
            return there
        tended.why = last_words(tended.place.log) or f"exit code {code}"
        killed = code == -signal.SIGKILL
        # Killed from outside: nothing is wrong with it.
        failures = there.failures + (0 if killed else 1)
        return replace(there, failures=failures, failed_at=time.monotonic(), refused=code == _WRONG_TOPOLOGY)

    def _report(self, wanted: Wanted, tended: _Tended) -> None:
        there = tended.there
        how = how_it_is(wanted, there)
        seen: dict[str, Any] = {"how": how, "why": tended.why if how in ("failed", "starting") else tended.trouble,
                                "epoch": there.epoch, "at": time.time(), "digest": there.begun.digest,
                                "replicas": [], "safety": "", "progress": last_progress(tended.place.log),
                                "busy": tended.busy}  # fmt: skip
        if there.alive and there.epoch:
            with contextlib.suppress(CoordinationError):
                roster = self._roster(wanted, tended)
                members, told = roster.members(), roster.told()
                views = views_of(members, told)
                seen |= {"replicas": [asdict(view) for view in views], "safety": safety_of(views) if views else "",
                         "epoch": max([there.epoch, *(view.epoch for view in views)])}  # fmt: skip
        self._nodes.tell(self.node.name, wanted.name, seen)

    # -- acting ---------------------------------------------------------------------------------

    def _tend(self, wanted: Wanted, tended: _Tended) -> None:
        if tended.busy or time.monotonic() < tended.not_before:
            return
        match decide(wanted, tended.there, time.monotonic(), self._here(wanted)):
            case Act.REHOME:
                self._say(f"{wanted.name}: watches replicas {', '.join(self._here(wanted))} from now on")
                self._unwatch(tended)
            case Act.START:
                self._start(wanted, tended)
            case Act.RENEW if self._unpacked(wanted, tended):
                self._begun(wanted, tended)
                if wanted.replicas > 1:
                    self._say(f"{wanted.name}: another version is put in place, one replica after the other")
                    self._in_background(tended, lambda: self._renew(wanted, tended))
                else:
                    self._stop(wanted.name, tended)
            case Act.STOP:
                self._stop(wanted.name, tended)
            case _:
                pass

    def _here(self, wanted: Wanted) -> tuple[str, ...]:
        """The replicas that are this node's, where each has a node of its own."""
        return wanted.on(self.node.name) if wanted.spread else ()

    def _unwatch(self, tended: _Tended) -> None:
        """End who watches the replicas, at once: they go on, and the next one finds them."""
        process = tended.place.state.running()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _renew(self, wanted: Wanted, tended: _Tended) -> None:
        done, said = self._command(wanted, tended, "restart", ())
        again = f"`penstock restart {wanted.name}` tries again"
        tended.trouble = "" if done else f"version {wanted.digest[:12]} was not put in place ({again}): {said}"
        if not done:
            self._say(f"{wanted.name}: {tended.trouble}")

    def _start(self, wanted: Wanted, tended: _Tended) -> None:
        if not self._unpacked(wanted, tended):
            return
        anew = wanted.fresh > tended.there.begun.fresh
        self._begun(wanted, tended)
        command = [*self._penstock("run", wanted, tended.place), "--supervised", "--json",
                   *(["--fresh"] if anew else []), *self._share(wanted)]  # fmt: skip
        tended.place.path.mkdir(parents=True, exist_ok=True)
        with tended.place.log.open("ab") as log:
            # A session of its own: it outlives this supervisor.
            tended.process = subprocess.Popen(command, cwd=tended.place.work, env=_environment(), stdout=log,
                                              stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        tended.there = replace(tended.there, alive=True, stopping=False)
        self._say(f"{wanted.name}: started, process {tended.process.pid}")

    def _unpacked(self, wanted: Wanted, tended: _Tended) -> bool:
        """Have the wanted version's files in the working folder; False when they cannot be had."""
        if tended.there.begun.digest == wanted.digest and (tended.place.work / wanted.file).exists():
            return True
        if tended.refused == wanted.digest:
            return False
        try:
            files = contents(self._fetch(wanted.digest))
            if digest_of(files) != wanted.digest:
                raise BundleError("its files are not those that were submitted: submit it once more")
            unpack(files, tended.place.work)
        except (ConsoleError, OSError) as error:
            if not isinstance(error, OSError):
                tended.refused = wanted.digest
            tended.why = f"its files could not be had: {error}"
            self._say(f"{wanted.name}: {tended.why}")
            return False
        return True

    def _begun(self, wanted: Wanted, tended: _Tended) -> None:
        begun = Begun(wanted.digest, wanted.file, wanted.sets, wanted.fresh, self._here(wanted), wanted.starts)
        tended.place.note(begun)
        # Another version is another chance.
        tended.there = replace(tended.there, begun=begun, failures=0, refused=False)
        tended.why = ""

    def _stop(self, name: str, tended: _Tended) -> None:
        process = tended.place.state.running()
        if process is None and tended.process is not None:
            process = tended.process.pid
        if process is not None:
            self._say(f"{name}: stops after its epoch")
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        tended.there = replace(tended.there, stopping=True)

    def _let_go(self, name: str, tended: _Tended) -> None:
        """It is not wanted here any more."""
        if tended.there.alive:
            if not tended.there.stopping:
                self._stop(name, tended)
            return
        if tended.coordinator is not None:
            tended.coordinator.close()
        del self._tended[name]

    # -- commands -------------------------------------------------------------------------------

    def _take(self, task: Task, wanted: Wanted | None) -> None:
        tended = self._tended.get(task.topology)
        if task.id in self._taken:
            return
        if not self._nodes.begin(task, self.node.run):
            self._nodes.finish(task, False, "the supervisor that had begun it is gone: look whether it was done")
            return
        if wanted is None or tended is None:
            self._nodes.finish(task, False, f"topology '{task.topology}' does not run on node '{self.node.name}'")
            return
        words = [str(word) for word in task.arguments.get("words", ())]

        def carry_out() -> None:
            try:
                done, said = self._command(wanted, tended, task.verb, words)
            except Exception as error:
                done, said = False, f"{type(error).__name__}: {error}"
            self._finish(task, done, said)

        if task.verb == "state" or "--json" in words:
            # It changes nothing: what the topology needs is not put off for it.
            self._taken.add(task.id)
            self._questions.submit(carry_out)
        elif not tended.busy:
            self._taken.add(task.id)
            self._in_background(tended, carry_out)

    def _finish(self, task: Task, done: bool, said: str) -> None:
        """Tell how it went; while the coordinator is away, again and again: it is not done a second time."""
        while not self._over.is_set():
            with contextlib.suppress(CoordinationError):
                self._nodes.finish(task, done, said)
                return
            self._over.wait(LOOK_SECONDS)

    def _in_background(self, tended: _Tended, work: Callable[[], object]) -> None:
        tended.busy = True

        def run() -> None:
            try:
                with contextlib.suppress(CoordinationError):
                    work()
            finally:
                tended.busy = False

        self._commands.submit(run)

    def _command(self, wanted: Wanted, tended: _Tended, verb: str, words: Sequence[str]) -> tuple[bool, str]:
        """Give a `penstock` command for a topology of this node; whether it was done, and what it said."""
        if verb == "restore":
            # The only one with something before the file: which of the checkpoints in the state's folder.
            name, *words = words
            command = self._penstock(verb, wanted, tended.place, str(tended.place.state.snapshots / name))
        else:
            command = self._penstock(verb, wanted, tended.place)
        command += words
        try:
            done = subprocess.run(command, cwd=tended.place.work, env=_environment(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=_COMMAND_SECONDS,
                                  check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"it was not done within {_COMMAND_SECONDS:.0f} s"
        said = (done.stdout if done.returncode == 0 else done.stderr or done.stdout).strip()
        for item in wanted.sets:
            # The values of `--set` may be passwords.
            said = said.replace(item, f"{item.partition('=')[0]}=…")
        # Whole lines: they may be JSON.
        return done.returncode == 0, said if len(said) <= _LAST_WORDS else said[-_LAST_WORDS:].partition("\n")[2]

    def _penstock(self, verb: str, wanted: Wanted, place: TopologyPlace, *before: str) -> list[str]:
        sets = [part for item in wanted.sets for part in ("--set", item)]
        shared = self._shared_log(wanted)
        logs = [] if shared is None else ["--coordinator", shared]
        return [sys.executable, "-m", "penstock", verb, *before, str(place.work / wanted.file), *sets, *logs,
                "--state", str(place.state.path)]  # fmt: skip

    def _share(self, wanted: Wanted) -> list[str]:
        if not wanted.spread:
            return []
        return ["--share", str(Share(self._here(wanted), wanted.fresh)), "--nodes", str(self._home.nodes)]

    def _shared_log(self, wanted: Wanted) -> str | None:
        """The coordinator of a topology, where it is not a file of its own among its state."""
        if self._epoch_logs is None and wanted.spread:
            # On one machine: the nodes have one home.
            return f"sqlite:{self._home.path / 'spread' / wanted.name}.sqlite"
        return self._epoch_logs

    def _roster(self, wanted: Wanted, tended: _Tended) -> Roster:
        if tended.coordinator is None:
            topology = tended.place.state.coordinator_of(wanted.name, self._shared_log(wanted))
            tended.coordinator = open_coordinator(topology)
        return Roster(tended.coordinator)


def _environment() -> dict[str, str]:
    """As ours, but for what means something else to a topology."""
    return {name: value for name, value in os.environ.items() if name not in _OF_THE_CONSOLE}


_RANK = ("running", "stopping", "starting", "failed", "stopped", "ended")
"""Of a topology that is on several nodes, how it is: as the first of these that any node says."""


def merged(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """What all nodes see of one topology, as one: of what was said lately, the newest look at each replica."""
    newest = max((seen["at"] for seen in told.values()), default=None)
    if newest is None:
        return None
    recent = sorted((seen for seen in told.values() if newest - seen["at"] <= SILENT_SECONDS),
                    key=lambda seen: float(seen["at"]))  # fmt: skip
    views = {view["name"]: view for seen in recent for view in seen["replicas"]}
    furthest = max(recent, key=lambda seen: int((seen["progress"] or {}).get("epoch", 0)))
    first = min(reversed(recent), key=lambda seen: _RANK.index(seen["how"]) if seen["how"] in _RANK else len(_RANK))
    replicas = [views[name] for name in sorted(views)]
    return {**first, "at": newest, "progress": furthest["progress"], "replicas": replicas}
