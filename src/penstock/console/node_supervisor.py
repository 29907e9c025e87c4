"""The supervisor of a node: has the topologies run that belong here, does what it is told, and says what it sees.

Each topology has a process of its own that watches its replicas (`penstock run --supervised`). When this supervisor is
killed they go on; the next one finds them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from penstock.console.bundle import Fetch, contents, digest_of, unpack
from penstock.console.calling import Calling, environment, secrets_of
from penstock.console.commands import Verb
from penstock.console.desired import Desired, Wanted
from penstock.console.fetching import fetch_in_background
from penstock.console.home import ConsoleHome
from penstock.console.masking import masked
from penstock.console.node_commands import NodeCommands
from penstock.console.nodes import Node, Nodes, NodeTaken
from penstock.console.placing import replica_names
from penstock.console.private_files import private
from penstock.console.tended import Tended
from penstock.console.tending import (
    MOST_FAILURES,
    Act,
    How,
    There,
    begun_with,
    decide,
    how_it_is,
    is_another,
    pause_after,
)
from penstock.console.topology_log import last_words, newest_deliveries, newest_progress, shorten_logs
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.errors import BundleError, ConsoleError, CoordinationError
from penstock.replication.roster import Roster
from penstock.replication.views import safety_of, views_of, with_frozen_operators
from penstock.runtime.state_folder import StateFolder

LOOK_SECONDS = 0.25
"""At most so old is what a node tells; a task that is given to it wakes it up."""
_REPEAT_SECONDS = 1.0
"""How often it says the same again, where nothing has changed."""
_TROUBLE_SECONDS = 5.0
_FETCH_AGAIN_SECONDS = 1.0
_WRONG_TOPOLOGY = 2


class NodeSupervisor:
    """One node; `run` until `stop`."""

    def __init__(self, node: Node, home: ConsoleHome, coordinator: Coordinator, fetch: Fetch,
                 say: Callable[[str], None] = lambda _: None, epoch_logs: str | None = None,
                 spread_logs: Path | None = None) -> None:  # fmt: skip
        """`epoch_logs` and `spread_logs` are as in `Calling`."""
        self.node = node
        self._calling = Calling(node.name, home, epoch_logs, spread_logs)
        self._home = home
        self._coordinator = coordinator
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._fetch = fetch
        self._say = say
        self._tended: dict[str, Tended] = {}
        self._commands = NodeCommands(node, self._nodes, self._calling, self._desired)
        self._over = threading.Event()
        self._wake = threading.Event()

    def join(self, turned_away: Callable[[NodeTaken], object] = lambda _: None) -> None:
        """Sign in; raises NodeTaken when this node has a supervisor.

        One that was frozen or cut off for long signs in again by itself; where the node has another supervisor by now,
        it stops and is `turned_away`.
        """
        self._nodes.join(self.node)
        self._coordinator.on_expired(lambda: self._join_again(turned_away))

    def run(self) -> None:
        """Until `stop`. The topologies go on without it."""
        with contextlib.suppress(OSError):
            # Others that see it share this home.
            (self._home.nodes / self.node.name).mkdir(parents=True, exist_ok=True)
        self.find()
        with contextlib.suppress(CoordinationError):
            self._coordinator.watch(self._nodes.tasks_of(self.node.name), self._wake.set)
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.look()
            except CoordinationError:
                pass
            except Exception as error:
                # Whatever it is, the topologies of this node need somebody who looks after them.
                self._say(f"node {self.node.name}: {type(error).__name__}: {error}")
            self._wake.wait(max(LOOK_SECONDS - (time.monotonic() - began), 0.05))
            self._wake.clear()
        self._commands.close()
        for tended in self._tended.values():
            if tended.coordinator is not None:
                tended.coordinator.close()

    def stop(self) -> None:
        self._over.set()
        self._wake.set()

    def find(self) -> None:
        """What still runs on this node since a supervisor before, wanted or not."""
        for path in sorted((self._home.nodes / self.node.name).glob("*/state")):
            name = path.parent.name
            try:
                runs = StateFolder(path).running() is not None or bool(_replicas_at(StateFolder(path)))
            except Exception as error:
                # It may run: each look tries to see it.
                self._say(f"{name}: {_in_words(error)}")
                runs = True
            if runs:
                self._tended[name] = Tended(self._home.topology(name, self.node.name))

    def look(self) -> None:
        """One look at what is wanted and what is there."""
        wanted = {each.name: each for each in self._desired.all() if self.node.name in each.nodes.values()}
        for name in [*self._tended, *(name for name in wanted if name not in self._tended)]:
            self._try_to_see(name, self._tended.setdefault(name, Tended(self._home.topology(name, self.node.name))))
        # Before what is wanted: whoever is to be killed is not asked to end first.
        for task in self._nodes.tasks(self.node.name):
            self._commands.take(task, wanted.get(task.topology), self._tended.get(task.topology))
        for name, tended in list(self._tended.items()):
            try:
                if name in wanted:
                    self._tend(wanted[name], tended)
                else:
                    self._let_go(name, tended)
            except CoordinationError:
                raise
            except Exception as error:
                # A full disk, for one: the others are tended all the same, and this one is tried again.
                tended.why = f"node {self.node.name}: {_in_words(error)}"
                tended.not_before = time.monotonic() + _TROUBLE_SECONDS
            if name in wanted:
                self._report(wanted[name], tended)

    def _join_again(self, turned_away: Callable[[NodeTaken], object]) -> None:
        # Its session was lost: frozen, or cut off from the coordinator. What it tends has gone on meanwhile.
        try:
            self._nodes.join(self.node)
        except NodeTaken as taken:
            # Each of two would say that the other is gone, and do what that one does.
            self.stop()
            turned_away(taken)
        except CoordinationError:
            # Cut off once more: with the next session it is called again.
            pass

    # -- seeing ---------------------------------------------------------------------------------

    def _try_to_see(self, name: str, tended: Tended) -> None:
        """How a topology is; where its files do not tell, the others are looked after all the same."""
        before, tended.unreadable = tended.unreadable, ""
        try:
            self._see(tended)
        except Exception as error:
            tended.unreadable = f"node {self.node.name}: {_in_words(error)}"
            if tended.unreadable != before:
                self._say(f"{name}: {tended.unreadable}")

    def _see(self, tended: Tended) -> None:
        place = tended.place
        shorten_logs(place)
        if tended.process is not None and tended.process.poll() is not None:
            tended.there = self._ended(tended, tended.there)
        there = tended.there
        alive = tended.process is not None or place.state.running() is not None
        # At once: it can be stopped also where the rest cannot be read.
        tended.there = there = replace(there, begun=place.begun(), alive=alive, stopping=there.stopping and alive)
        tended.there = there = replace(there, unwatched=not alive and bool(_replicas_at(place.state)))
        committed = place.state.furthest().committed()
        failures = 0 if committed.epoch > there.epoch else there.failures
        tended.there = replace(there, epoch=committed.epoch, ended=committed.ended, failures=failures)

    def _ended(self, tended: Tended, there: There) -> There:
        assert tended.process is not None
        code = tended.process.returncode
        if code == 0 or there.stopping:
            tended.process = None
            return there
        tended.why = last_words(tended.place.log, tended.place.secrets()) or f"exit code {code}"
        tended.process = None
        killed = code == -signal.SIGKILL
        # Killed from outside: nothing is wrong with it.
        failures = there.failures + (0 if killed else 1)
        return replace(there, failures=failures, failed_at=time.monotonic(), refused=code == _WRONG_TOPOLOGY)

    def _report(self, wanted: Wanted, tended: Tended) -> None:
        there = tended.there
        how = how_it_is(wanted, there)
        why = tended.why if how in ("failed", "starting") else tended.trouble
        if tended.unreadable:
            # It is not started before somebody has done something about it; what runs goes on.
            how, why = How.FAILED if how is How.STARTING and not there.alive else how, tended.unreadable
        seen: dict[str, Any] = {"how": how, "why": why,
                                "epoch": there.epoch, "at": time.time(), "digest": there.begun.digest,
                                "replicas": [], "safety": "", "progress": None,
                                "busy": tended.busy, "delivered_by": (0, ""),
                                "divergence": tended.divergence}  # fmt: skip
        try:
            seen["progress"] = newest_progress(tended.place)
            if there.alive and there.epoch:
                seen |= self._of_replicas(wanted, tended)
        except CoordinationError:
            # Of its own coordinator: the rest is told.
            pass
        except Exception as error:
            seen["why"] = why or f"node {self.node.name}: {_in_words(error)}"
        if tended.is_news(seen, _REPEAT_SECONDS):
            self._nodes.tell(self.node.name, wanted.name, seen)
            tended.note_told(seen)

    def _of_replicas(self, wanted: Wanted, tended: Tended) -> dict[str, Any]:
        """What the replicas of a topology that runs tell; raises CoordinationError."""
        roster = self._roster(wanted, tended)
        assert tended.coordinator is not None
        told = views_of(roster.members(), roster.told(), replica_names(wanted))
        found = with_frozen_operators(told, Orders(tended.coordinator))
        # A new version may have other values while replicas of the last one still run.
        secrets = (*wanted.sets, *(tended.place.secrets() if any(view.why for view in found) else ()))
        views = [replace(view, why=masked(view.why, secrets)) for view in found]
        if len(views) > 1:
            # Kept when it has ended: whoever comes then is to know, too.
            differing = roster.divergence()
            tended.divergence = "" if differing is None else str(differing)
        return {"replicas": [asdict(view) for view in views], "safety": safety_of(views) if views else "",
                "divergence": tended.divergence, "epoch": max([tended.there.epoch, *(view.epoch for view in views)]),
                "delivered_by": newest_deliveries(tended.coordinator)}  # fmt: skip

    # -- acting ---------------------------------------------------------------------------------

    def _tend(self, wanted: Wanted, tended: Tended) -> None:
        if tended.busy:
            if not wanted.goal.runs:
                # It would wait for replicas that are about to end.
                tended.give_up_rolling()
            return
        if wanted.goal.runs and (tended.unreadable or time.monotonic() < tended.not_before):
            return
        self._note_starts(wanted, tended)
        match decide(wanted, tended.there, time.monotonic(), self._calling.here(wanted)):
            case Act.REHOME:
                self._say(f"{wanted.name}: watches replicas {', '.join(self._calling.here(wanted))} from now on")
                self._unwatch(tended)
            case Act.START if not self._ends_leftovers(wanted, tended):
                self._start(wanted, tended)
            case Act.RENEW if tended.failed_renewals.get(wanted.digest, 0) < MOST_FAILURES:
                if self._unpacked(wanted, tended):
                    self._put_in_place(wanted, tended)
            case Act.STOP:
                self._stop(wanted.name, tended)
            case _:
                pass

    def _unwatch(self, tended: Tended) -> None:
        """End who watches the replicas, at once: they go on, and the next one finds them."""
        process = tended.place.state.running()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _note_starts(self, wanted: Wanted, tended: Tended) -> None:
        """A start that was wanted of one that runs is done with: it is not started again when it ends."""
        begun = tended.there.begun
        if tended.there.alive and begun.starts != wanted.starts:
            tended.place.note(replace(begun, starts=wanted.starts))

    def _ends_leftovers(self, wanted: Wanted, tended: Tended) -> bool:
        """Whether replicas of another version, which nobody watches, still run here; they are told to end."""
        if not is_another(wanted, tended.there.begun):
            return False
        return self._ends_unwatched(tended)

    def _ends_unwatched(self, tended: Tended) -> bool:
        """Whether replicas that nobody watches still run here; they are told to end after their epoch, once."""
        left = _replicas_at(tended.place.state)
        for process in left - tended.told_to_end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        tended.told_to_end = left
        return bool(left)

    def _put_in_place(self, wanted: Wanted, tended: Tended) -> None:
        """Another version, in place of the one that runs."""
        if wanted.replicas == 1:
            self._begun(wanted, tended)
            self._stop(wanted.name, tended)
            return
        self._say(f"{wanted.name}: another version is put in place, one replica after the other")
        self._commands.in_background(tended, Verb.RESTART, lambda: self._renew(wanted, tended))

    def _renew(self, wanted: Wanted, tended: Tended) -> None:
        done, said = self._commands.carry_out(wanted, tended, Verb.RESTART, ())
        if done:
            return
        again = f"`penstock restart {wanted.name}` tries again"
        tended.trouble = f"version {wanted.digest[:12]} was not put in place ({again}): {said}"
        tended.failed_renewals[wanted.digest] = failures = tended.failed_renewals.get(wanted.digest, 0) + 1
        tended.not_before = time.monotonic() + pause_after(failures) + _TROUBLE_SECONDS
        self._say(f"{wanted.name}: {tended.trouble}")

    def _start(self, wanted: Wanted, tended: Tended) -> None:
        if not self._unpacked(wanted, tended):
            return
        tended.divergence = ""
        anew = wanted.fresh > tended.there.begun.fresh
        tended.place.keep_secret(secrets_of(wanted.sets, wanted.variables))
        self._begun(wanted, tended)
        command = [*self._calling.line("run", wanted, tended.place), "--supervised", "--json",
                   "--progress-file", str(tended.place.progress),
                   *(["--fresh"] if anew else []), *self._calling.share(wanted)]  # fmt: skip
        tended.place.path.mkdir(parents=True, exist_ok=True)
        with open(tended.place.log, "ab", opener=private) as log:
            # A session of its own: it outlives this supervisor.
            tended.process = subprocess.Popen(command, cwd=tended.place.work, env=environment(wanted.sets), stdout=log,
                                              stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        tended.there = replace(tended.there, alive=True, stopping=False)
        self._say(f"{wanted.name}: started, process {tended.process.pid}")

    def _unpacked(self, wanted: Wanted, tended: Tended) -> bool:
        """Have the wanted version's files in the working folder; False while they are not here, or cannot be had."""
        if tended.there.begun.digest == wanted.digest and (tended.place.work / wanted.file).exists():
            return True
        if tended.refused == wanted.digest:
            return False
        fetched = self._fetched(wanted.digest, tended)
        if fetched is None:
            return False
        try:
            files = contents(fetched.result())
            if digest_of(files) != wanted.digest:
                raise BundleError("its files are not those that were submitted: submit it once more")
            unpack(files, tended.place.work)
        except (ConsoleError, OSError) as error:
            if isinstance(error, OSError):
                tended.not_before = time.monotonic() + _FETCH_AGAIN_SECONDS
            else:
                tended.refused = wanted.digest
            why, before = f"its files could not be had: {error}", tended.why
            tended.why = why
            if tended.there.alive:
                tended.trouble = f"version {wanted.digest[:12]} was not put in place: {why}"
            if why != before:
                self._say(f"{wanted.name}: {why}")
            return False
        tended.unpacked = wanted.digest
        return True

    def _fetched(self, digest: str, tended: Tended) -> Future[bytes] | None:
        """The answer to who was asked for a bundle; None while it is not here: others are not kept waiting for it."""
        if tended.fetching is None or tended.fetching[0] != digest:
            tended.fetching = (digest, fetch_in_background(self._fetch, digest, self._wake.set))
        fetched = tended.fetching[1]
        if not fetched.done():
            return None
        tended.fetching = None
        return fetched

    def _begun(self, wanted: Wanted, tended: Tended) -> None:
        begun = begun_with(wanted, self._calling.here(wanted))
        tended.place.note(begun)
        # Another version is another chance.
        tended.there = replace(tended.there, begun=begun, failures=0, refused=False)
        tended.why = tended.trouble = ""

    def _stop(self, name: str, tended: Tended) -> None:
        if tended.there.unwatched:
            if not tended.told_to_end:
                self._say(f"{name}: its replicas, which nobody watches, stop after their epoch")
            self._ends_unwatched(tended)
            return
        process = tended.place.state.running()
        if process is None and tended.process is not None:
            process = tended.process.pid
        if process is not None:
            self._say(f"{name}: stops after its epoch")
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        tended.there = replace(tended.there, stopping=True)

    def _let_go(self, name: str, tended: Tended) -> None:
        """It is not wanted here any more."""
        if tended.there.alive or tended.there.unwatched:
            if not tended.there.stopping:
                self._stop(name, tended)
            return
        if tended.unreadable:
            # It may run.
            return
        if tended.coordinator is not None:
            tended.coordinator.close()
        del self._tended[name]

    def _roster(self, wanted: Wanted, tended: Tended) -> Roster:
        if tended.coordinator is None:
            topology = tended.place.state.coordinator_of(wanted.name, self._calling.shared_log(wanted))
            tended.coordinator = open_coordinator(topology)
        return Roster(tended.coordinator)


def _replicas_at(state: StateFolder) -> frozenset[int]:
    """The processes of the replicas that run."""
    return frozenset(process for each in state.replicas().values() if (process := each.running()) is not None)


def _in_words(error: Exception) -> str:
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
