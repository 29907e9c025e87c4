"""Starts the replicas of a topology, watches them, and replaces those that fail.

Results do not pass through here: when the supervisor is killed, its replicas go on, and the next one finds them.
What to do is decided in `replication.lifecycle`; here it is done.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from penstock.control.making_ready import MakingReady
from penstock.control.precedence import Precedence, Runner
from penstock.control.priority import can_be_raised, lower_session, lowered, raise_session
from penstock.control.replica_process import ReplicaProcess
from penstock.control.share import Share
from penstock.control.shared_sinks import SharedSinks
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError, DeliveryError, TopologyError
from penstock.replication.divergence import Divergence
from penstock.replication.lifecycle import Action, Head, Phase, Sight, decide, phase_of
from penstock.replication.placement import HEALING_SECONDS, choose_cell
from penstock.replication.replica import ReplicaPlace, log_of
from penstock.replication.roster import CHANGING, ENDED, FAILED, FROZEN, PARKED, Member, Roster, Told
from penstock.replication.version import version_of
from penstock.replication.views import ReplicaView
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1
_STOP_SECONDS = 60.0
_PACES_KEPT = 20
_LOWERED_SECONDS = 90.0
"""A replica that starts leaves the processors to its siblings until it is safe, but no longer than this: on a machine
with too much to do it would never catch up."""
_ALL_SILENT_SECONDS = 5.0
"""So long nobody is blamed when all replicas are signed out at once, or the only one that delivers: the machine stood
still, or the coordinator was away, and they sign in again."""
_FAILURES_OF_A_SICK_CELL = 2
"""So many failures in a row, and never safe between them, are put down to the cell; one may be chance, or a kill."""
_SECONDS_AFTER_A_START_IN_VAIN = 2.0
"""One that cannot even be started fails at once, and a disk may be back in a moment."""
_WRONG_TOPOLOGY = 2
"""The exit code of a replica that will not start, however often it is tried."""


@dataclass
class _Slot:
    """The place of one replica: whoever fills it has its name and its state."""

    name: str
    cell: str
    process: ReplicaProcess | None = None
    sight: Sight = field(default_factory=Sight)
    told: Told | None = None
    why: str = ""
    run: str = ""
    """The start that is signed in, or was last."""
    past: str = ""
    """The start before: what there still is of it in the coordinator is not about the present one."""
    lowered: bool = False
    """Whether it leaves the processors to its siblings."""
    signed_in: float = 0.0
    """When it was last seen to be signed in, or nobody could tell."""
    tried: float | None = None
    """When it could not be started, as long as that was the last thing that was tried."""


class Supervisor:
    """Keeps `topology.replicas` replicas running; `command` starts one, with `--replica NAME --cell CELL` after it."""

    def __init__(self, topology: Topology, place: ReplicaPlace, command: Sequence[str], coordinator: str | None = None,
                 scratch: Path | None = None, clock: Callable[[], float] = time.monotonic,
                 share: Share | None = None, when_safe: Callable[[], None] = lambda: None,
                 go_back: Callable[[int], None] | None = None) -> None:
        """With a `share`, only its replicas are looked after here. `when_safe` is called once, when all are safe.

        `go_back` is for a share whose history begins with a checkpoint: it puts that in the place of what is at home,
        all of it or nothing, and is given the lock of the home. It is called on the node that goes first.
        """
        self.topology = topology
        self._all = topology.replica_names
        self._share = share
        self._go_back = go_back
        self._place = place
        self._command = list(command)
        self._address = place.coordinator(topology, coordinator)
        self._sinks = SharedSinks(topology, place.home.path, scratch)
        self._clock = clock
        self._when_safe: Callable[[], None] | None = when_safe
        self._slots: list[_Slot] = []
        self._sick: dict[str, float] = {}
        """The cells in which replicas have failed again and again, and when they last did."""
        self._head = Head()
        self._paces: deque[float] = deque(maxlen=_PACES_KEPT)
        """How far the last epochs were apart."""
        self._tooks: deque[float] = deque(maxlen=_PACES_KEPT)
        """What each of them took the replica that was furthest."""
        self._precedence = Precedence()
        self._is_away = False
        """Whether the coordinator gave no answer at the last look."""
        self._silent_since: float | None = None
        """Since when no replica is signed in."""
        self._stopping = False
        self._diverged: Divergence | None = None
        """What was last said of replicas that differ."""
        self._version: str | None = None
        self._say: Callable[[str], None] = lambda _: None
        self._resources = contextlib.ExitStack()

    def start(self, fresh: bool, say: Callable[[str], None] = lambda _: None) -> int:
        """Make everything ready, and find the replicas that run already; returns the epoch to go on from."""
        self._say = say
        try:
            lock = self._resources.enter_context(self._place.home.held())
            coordinator = open_coordinator(self._address)
            self._resources.callback(coordinator.close)
            self._roster = Roster(coordinator)
            self._log = EpochLog(coordinator)
            self._orders = Orders(coordinator)
            running = self._roster.members()
            ready = MakingReady(self.topology, self._place, self._sinks, coordinator, self._go_back)
            if self._share is not None:
                ready.with_others(self._share, fresh, lock)
            elif not running:
                ready.by_itself(fresh)
            elif self._roster.agree_on(version_of(self.topology)) != version_of(self.topology):
                raise TopologyError(
                    f"replicas of another version of '{self.topology.name}' are running: stop them first, with "
                    "the file they were started with"
                )
            self._version = self._roster.version()
            for name in self._all if self._share is None else self._share.here:
                self._slots.append(self._slot(name))
        except BaseException:
            self._resources.close()
            raise
        return self._reached()

    def watch(self, look: Callable[[dict[str, Any] | None, list[ReplicaView]], None]) -> bool:
        """Until the input ends, or `stop` is called; True when it has ended.

        `look` sees the progress of the replica that is furthest, and all replicas. Raises DeliveryError when no replica
        can go on.
        """
        try:
            while True:
                self._look_around()
                look(self._furthest_progress(), self.views())
                self._heed_divergence()
                if any(slot.sight.ended for slot in self._slots):
                    self._stop_all()
                    return True
                if self._stopping:
                    self._stop_all()
                    return False
                for slot in self._slots:
                    self._act(slot)
                self._look_whether_safe()
                self._put_in_order()
                if all(slot.sight.parked for slot in self._slots):
                    reasons = "\n".join(f"  replica {slot.name}: {slot.why}" for slot in self._slots)
                    raise DeliveryError(f"no replica of '{self.topology.name}' can go on:\n{reasons}")
                time.sleep(_LOOK_SECONDS)
        except BaseException:
            self._stop_all()
            raise
        finally:
            self._resources.close()

    def stop(self) -> None:
        """All replicas finish their epoch, and end."""
        self._stopping = True

    def views(self) -> list[ReplicaView]:
        return [
            ReplicaView(slot.name, slot.cell, phase_of(slot.sight, self._head), slot.sight.reached,
                        max(self._head.epoch - slot.sight.reached, 0), slot.told.first if slot.told else 0, slot.why)
            for slot in self._slots
        ]

    # -- before ---------------------------------------------------------------------------------

    def _reached(self) -> int:
        return self._place.home.furthest().committed().epoch

    def _slot(self, name: str) -> _Slot:
        members = self._roster.members()
        member = members.get(name)
        if member is None:
            # Two nodes that start at the same moment do not choose the same one.
            first = (int(name) - 1) % len(self.topology.cells) if self._share is not None else 0
            cells = (*self.topology.cells[first:], *self.topology.cells[:first])
            taken = [slot.cell for slot in self._slots] if self._share is None else self._cells_of_others(name)
            return _Slot(name, choose_cell(cells, taken) or cells[0])
        slot = _Slot(name, member.cell)
        self._adopt(slot, member)
        return slot

    def _adopt(self, slot: _Slot, member: Member) -> None:
        """Whoever fills the place already is looked after as if it had been started here."""
        self._say(f"replica {slot.name} is running already: process {member.process}")
        now, process = self._clock(), ReplicaProcess.found(member)
        slot.cell, slot.process, slot.run, slot.told, slot.tried = member.cell, process, member.run, None, None
        slot.sight = Sight(alive=True, seen=True, registered=True, started=now, moved=now)
        # Who started it may have died before it was raised.
        slot.lowered = process.is_here and can_be_raised()

    def _cells_of_others(self, name: str) -> list[str]:
        own = [slot.cell for slot in self._slots if slot.name != name]
        return [*own, *(member.cell for other, member in self._roster.members().items() if other != name)]

    # -- looking --------------------------------------------------------------------------------

    def _look_around(self) -> None:
        try:
            members, told = self._roster.members(), self._roster.told()
            self._heed_version(self._roster.version())
            self._tell_who_is_parked(members, told)
            self._is_away = False
        except CoordinationError:
            self._is_away = True
            # Nobody can be told to be gone while the coordinator is away: only processes that are not there are.
            members, told = None, {}
        now = self._clock()
        for slot in self._slots:
            if members is None or slot.name in members:
                slot.signed_in = now
        if self._may_sign_in_again(members, now):
            members = None
        for slot in self._slots:
            member = None if members is None else members.get(slot.name)
            if member is not None and self._is_stranger(slot, member):
                self._take_in(slot, member)
            self._look_at(slot, None if members is None else slot.name in members and members[slot.name].run,
                          told.get(slot.name), now)
        self._look_who_is_ahead(told, now)

    def _look_who_is_ahead(self, told: Mapping[str, Told], now: float) -> None:
        here = {slot.name for slot in self._slots}
        seen = [(slot.sight.epoch, slot.sight.whole) for slot in self._slots]
        seen += [(said.epoch, said.whole) for name, said in told.items() if name not in here]
        furthest, took = max(seen, default=(0, 0.0))
        if furthest > self._head.epoch:
            if self._head.epoch:
                self._paces.append(now - self._head.moved)
            self._tooks.append(took)
            self._head = Head(furthest, now, max(self._tooks))
        for slot in self._slots:
            # While the coordinator is away they cannot say how far they are.
            passed = now if self._is_away else slot.sight.passed or now
            slot.sight = replace(slot.sight, passed=passed if self._head.epoch > slot.sight.epoch else None)

    def _is_stranger(self, slot: _Slot, member: Member) -> bool:
        """Whether who is signed in is not the one that was started or found here: no other of its name can start."""
        if slot.sight.ended or member.run in (slot.run, slot.past):
            return False
        found, own = ReplicaProcess.found(member), slot.process
        if own is not None and own.is_here == found.is_here and (not found.is_here or own.has_started(member.process)):
            return False
        # The session of the dead ends by itself.
        return found.is_alive() if found.is_here else True

    def _take_in(self, slot: _Slot, member: Member) -> None:
        """A supervisor that is gone has started it, and it had not signed in yet when this one looked who runs."""
        if slot.process is not None and slot.process.is_here:
            # It would be refused.
            slot.process.kill()
        self._adopt(slot, member)

    def _may_sign_in_again(self, members: Mapping[str, Member] | None, now: float) -> bool:
        """Whether all that were signed in were signed out a moment ago: it is hardly each one's own fault.

        Nor of those that are not the first to be back.
        """
        if members is None:
            return False
        if self._silent_since is None and not members and any(slot.sight.registered for slot in self._slots):
            self._silent_since = now
        if self._silent_since is not None and now - self._silent_since >= _ALL_SILENT_SECONDS and members:
            self._silent_since = None
        return self._silent_since is not None and now - self._silent_since < _ALL_SILENT_SECONDS

    def _is_missed(self, slot: _Slot, now: float) -> bool:
        """Whether one that was signed out a moment ago may sign in again, because no sibling could go on for it."""
        signed_out = slot.sight.seen and not slot.sight.registered and now - slot.signed_in < _ALL_SILENT_SECONDS
        return signed_out and not any(
            other.sight.registered and phase_of(other.sight, self._head) is Phase.SAFE
            for other in self._slots if other is not slot
        )

    def _any_safe(self) -> bool:
        return any(phase_of(slot.sight, self._head) is Phase.SAFE for slot in self._slots)

    def _look_whether_safe(self) -> None:
        if self._when_safe is not None and all(view.phase is Phase.SAFE for view in self.views()):
            self._when_safe()
            self._when_safe = None

    def _put_in_order(self) -> None:
        """Where replicas share processors, one of them goes ahead."""
        if len(self._slots) < 2 or not can_be_raised():
            return
        here = {slot.name: slot.process.process for slot in self._slots
                if slot.process is not None and slot.process.is_here and not slot.lowered}  # fmt: skip
        runners = [Runner(slot.name, phase_of(slot.sight, self._head), slot.sight.took,
                          self._head.epoch - slot.sight.epoch) for slot in self._slots]  # fmt: skip
        pace = median(self._paces) if self._paces else 0.0
        self._precedence.heed(runners, here, pace, still=self._clock() - self._head.moved)

    def _heed_version(self, version: str | None) -> None:
        """A new version is a new chance for replicas that are parked."""
        if version != self._version:
            self._version = version
            for slot in self._slots:
                if slot.sight.parked:
                    slot.sight = replace(slot.sight, parked=False, failures=0)

    def _tell_who_is_parked(self, members: Mapping[str, Member], told: Mapping[str, Told]) -> None:
        """Everybody is to see it, and the replica itself is gone; unless somebody else has started one of its name."""
        for slot in self._slots:
            said = told.get(slot.name)
            if slot.sight.parked and slot.name not in members and (said is None or said.how != PARKED):
                last = slot.told or Told(slot.run or slot.past)
                self._roster.tell(slot.name, replace(last, how=PARKED, why=slot.why))
                # It begins with a sibling's checkpoint if it ever starts again.
                self._log.forget_replica(slot.name)
                self._sinks.forget_staged([slot.name])

    def _heed_divergence(self) -> None:
        with contextlib.suppress(CoordinationError):
            found = self._roster.divergence()
            if found is not None and self.topology.on_divergence == "stop":
                raise DeliveryError(str(found))
            if found is not None and found != self._diverged:
                self._say(str(found))
            self._diverged = found

    def _look_at(self, slot: _Slot, run: str | bool | None, told: Told | None, now: float) -> None:
        """`run` is the start that is signed in; False: none is; None: nobody knows."""
        if run and run == slot.past:
            run = False
        sight = slot.sight
        # Of one that is elsewhere only the coordinator can tell.
        elsewhere = sight.alive if run is None else bool(run)
        alive = slot.process is not None and (slot.process.is_alive() if slot.process.is_here else elsewhere)
        if isinstance(run, str) and run != slot.run:
            slot.run = run
            sight = replace(sight, seen=True)
        if run is not None:
            sight = replace(sight, registered=bool(run))
        if told is not None and not slot.run and told.run != slot.past:
            # It may have ended before it was seen to be signed in.
            slot.run = told.run
        if told is not None and told.run == slot.run:
            slot.told = told
            if told.epoch > sight.epoch:
                sight = replace(sight, epoch=told.epoch, took=told.took, whole=told.whole, moved=now)
            stood_still = (sight.frozen or sight.changing) and told.how not in (FROZEN, CHANGING)
            sight = replace(sight, running=True, ended=told.how == ENDED, frozen=told.how == FROZEN,
                            idle=told.idle, changing=told.how == CHANGING, caught_up=told.caught_up, cold=told.cold,
                            moved=now if stood_still else sight.moved)  # fmt: skip
        if sight.alive and not alive and not sight.ended:
            sight = self._fallen(slot, sight)
        slot.sight = replace(sight, alive=alive)
        caught_up = phase_of(slot.sight, self._head) is Phase.SAFE
        if slot.lowered and slot.process is not None and (caught_up or now - slot.sight.started > _LOWERED_SECONDS):
            slot.lowered = not raise_session(slot.process.process)
        if caught_up:
            slot.sight = replace(slot.sight, failures=0)
            slot.why = ""
            self._sick.pop(slot.cell, None)

    def _fallen(self, slot: _Slot, sight: Sight) -> Sight:
        """It was there, and is not any more."""
        code = None if slot.process is None else slot.process.exit_code
        if slot.process is not None and slot.process.is_here:
            # Its JVM may outlive it for a while, and holds the state.
            slot.process.kill()
        told = slot.told
        slot.why = told.why if told is not None and told.how == FAILED and told.run == slot.run else self._how(code)
        parked = code == _WRONG_TOPOLOGY
        self._say(f"replica {slot.name} {'is parked' if parked else 'has ended'}: {slot.why.splitlines()[0]}")
        # Without a coordinator none can go on: that is not its fault.
        failures = sight.failures + (0 if self._is_away else 1)
        if failures >= _FAILURES_OF_A_SICK_CELL and not parked:
            self._sick[slot.cell] = self._clock()
        return replace(sight, failures=failures, parked=parked, seen=False, registered=False, running=False,
                       idle=None, changing=False, epoch=0)  # fmt: skip

    def _how(self, code: int | None) -> str:
        if code is not None and code < 0:
            return f"it was killed by signal {-code}"
        return "it is gone" if code is None else f"exit code {code}"

    def _furthest_progress(self) -> dict[str, Any] | None:
        heads = [slot.told for slot in self._slots if slot.told is not None and slot.told.progress]
        best = max(heads, key=lambda told: told.epoch, default=None)
        return None if best is None else dict(best.progress)

    # -- acting ---------------------------------------------------------------------------------

    def _act(self, slot: _Slot) -> None:
        now = self._clock()
        match decide(slot.sight, self._head, now):
            case Action.START if self._is_away:
                # It could not sign in.
                pass
            case Action.START if slot.tried is not None and now - slot.tried < _SECONDS_AFTER_A_START_IN_VAIN:
                pass
            case Action.START:
                self._start(slot, now)
            case Action.KILL if slot.process is not None and not slot.process.is_here:
                # Whoever is there looks after it.
                pass
            case Action.KILL if self._is_missed(slot, now):
                pass
            case Action.KILL:
                assert slot.process is not None
                self._say(f"replica {slot.name} gives no sign of life, or is stuck: it is killed and started again")
                slot.process.kill()
            case Action.PARK:
                slot.sight = replace(slot.sight, parked=True)
                self._say(f"replica {slot.name} has failed {slot.sight.failures} times and is parked: {slot.why}")
            case Action.NOTHING:
                pass

    def _start(self, slot: _Slot, now: float) -> None:
        others = [other.cell for other in self._slots if other is not slot]
        if self._share is not None:
            with contextlib.suppress(CoordinationError):
                others = self._cells_of_others(slot.name)
        sick = {cell: since for cell, since in self._sick.items() if now - since < HEALING_SECONDS}
        slot.cell = choose_cell(self.topology.cells, others, sick) or slot.cell
        command = [*self._command, "--replica", slot.name, "--cell", slot.cell]
        slot.lowered = can_be_raised() and self._any_safe()
        command = lowered(command) if slot.lowered else command
        try:
            slot.process = ReplicaProcess.start(command, log_of(self._place.state_of(slot.name)))
        except OSError as error:
            # Its log is on its own disk: the others have nothing to do with it.
            slot.tried, slot.lowered = now, False
            slot.why = f"it cannot be started: {error}"
            slot.sight = replace(slot.sight, failures=slot.sight.failures + 1)
            self._say(f"replica {slot.name}: {slot.why}")
            return
        if slot.lowered:
            lower_session(slot.process.process)
        slot.past, slot.run, slot.told, slot.tried = slot.run or slot.past, "", None, None
        self._say(f"replica {slot.name} starts in cell {slot.cell}")
        slot.sight = Sight(alive=True, started=now, moved=now, failures=slot.sight.failures)

    def _stop_all(self) -> None:
        own = {slot.name: slot.process for slot in self._slots if slot.process is not None and slot.process.is_here}
        here = list(own.values())
        for process in here:
            process.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(process.is_alive() for process in here) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        for process in here:
            if process.is_alive():
                process.kill()
        # One that was killed shortly before is not started again.
        self._sinks.forget_staged(own)

