"""Run a topology with replicas to its end, while one replica after the other is disturbed by a schedule.

Replicas promise to hide one failure at a time: the next blow falls when all of them are safe again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.chaos.gaps import Delivered, Gap, Stretch, gap_report, gaps_of
from penstock.chaos.life import Life, Session, clear_error
from penstock.chaos.schedule import VICTIMS, Act, Disturbance
from penstock.chaos.subject import Replicas
from penstock.chaos.trial import Outcome, Scene, Strike, Ways
from penstock.control.replica_process import OWNER
from penstock.epochs.moments import VARIABLE, Deed, read_marker, write_plan
from penstock.errors import CoordinationError
from penstock.replication.replica import ReplicaPlace, opened_roster
from penstock.replication.roster import Member, Told
from penstock.replication.views import all_safe
from penstock.runtime.state_folder import StateFolder

_POLL_SECONDS = 0.01
_ASK_SECONDS = 0.2
"""How often the replicas are asked how they are."""
_MOMENT_SECONDS = 60.0
"""How long a replica may take to come to the moment at which it is to die."""


@dataclass
class _Blow:
    """A disturbance that has been dealt, until all replicas are safe again."""

    disturbance: Disturbance
    began: float
    epoch: int
    fallen: bool = True
    """False while the replica has yet to come to the moment at which it dies."""
    frozen: Session | None = None


class ReplicaTrial:
    """One run of a topology with replicas. `run` once."""

    def __init__(
        self, ways: Ways, folder: Path, scratch: Path, replicas: Replicas, rest: float = 1.0, endless: bool = False
    ) -> None:
        """Replicas write to `folder` only; `scratch` takes logs and markers.

        Between two blows they are left alone for `rest` seconds. Where the input is `endless`, the run is stopped after
        the last blow.
        """
        self._ways = ways
        self._folder = folder
        self._scratch = scratch
        self._replicas = replicas
        self._rest = rest
        self._endless = endless
        self._place = ReplicaPlace(StateFolder(folder / "state"))
        self._pending: list[Disturbance] = []
        self._strikes: list[Strike] = []
        self._troubles: list[str] = []
        self._lives: list[Life] = []
        self.sessions: set[int] = set()
        """Of the replicas that were seen, those of which something is left."""
        self._members: dict[str, Member] = {}
        self._told: dict[str, Told] = {}
        self._asked = 0.0
        self.delivered: list[Delivered] = []
        self.stretches: list[Stretch] = []
        self.safe_from: float | None = None
        self._blow: _Blow | None = None
        self._due: float | None = None
        """When the next blow falls, once it is time for it."""

    @property
    def is_struck(self) -> bool:
        """Whether a blow has fallen after which not all replicas are safe yet."""
        return self._blow is not None

    def run(self, disturbances: Sequence[Disturbance] = ()) -> Outcome:
        """To the end of the input; whatever happens, also Ctrl-C, no process is left behind."""
        self._pending = list(disturbances)
        self._began, self._began_clock = time.monotonic(), time.time()
        try:
            ended = self._to_the_end()
            seconds = time.monotonic() - self._began
        finally:
            for life in self._lives:
                life.kill_all()
            for session in self.sessions:
                Session(session).kill_all()
        if self._blow is not None:
            self._recovered(self._blow, "the input ended meanwhile")
        self._strikes += [Strike(one, None, one.epoch, "not reached") for one in self._pending]
        starts = len(self._lives)
        pause = max(gaps_of(self.delivered), key=lambda gap: gap.seconds, default=Gap(0.0, 0.0, 0))
        committed = self._place.home.furthest().committed()
        gaps = gap_report(self.delivered, self.stretches, self.safe_from or 0.0, self._replicas.interval)
        return Outcome(
            ended, self._epoch, committed.lost_epochs, committed.lost_tuples, seconds, starts, pause.seconds,
            pause.epoch, tuple(self._strikes), tuple(self._troubles), (), gaps,
        )  # fmt: skip

    @property
    def _epoch(self) -> int:
        return self.delivered[-1][1] if self.delivered else 0

    # -- watching -------------------------------------------------------------------------------

    def _to_the_end(self) -> bool:
        life, stopping = self._start(), False
        while True:
            code = life.code()
            self._notice()
            if code is not None and (self._has_ended() or (self._endless and self._is_done())):
                return True
            if code == -9 and self._blow is not None and self._blow.disturbance.act is Act.KILL_SUPERVISOR:
                life = self._start()
            elif code is not None:
                why = clear_error(life.said()) or life.said()[-2000:]
                self._troubles.append(f"after epoch {self._epoch} the supervisor ended with {code}: {why}")
                return False
            last = self.delivered[-1][0] if self.delivered else self._began
            if time.monotonic() - last > self._ways.patience and not self._has_ended():
                self._troubles.append(
                    f"after epoch {self._epoch} no replica did anything for {self._ways.patience:.0f} s"
                )
                return False
            if not (self._endless and self._is_done()):
                self._go_on(life)
            elif not stopping:
                stopping = life.terminate()
            time.sleep(_POLL_SECONDS)

    def _start(self) -> Life:
        markers = self._scratch / "markers"
        markers.mkdir(parents=True, exist_ok=True)
        deeds = [Deed(one.moment, 0, VICTIMS[one.act], str(self._marker(one)), str(self._arming(one)))
                 for one in self._pending if one.moment is not None]  # fmt: skip
        folders = ["--state", str(self._place.home.path), "--scratch", str(self._folder / "out"),
                   "--coordinator", self._place.home.coordinator]  # fmt: skip
        # A supervisor that finds replicas running leaves them the plan that they were started with.
        sets = [part for item in self._replicas.sets for part in ("--set", item)]
        environment = {OWNER: str(os.getpid())} | ({VARIABLE: write_plan(deeds)} if deeds else {})
        life = Life([*self._ways.command, *sets, *folders], environment,
                    self._scratch / "logs" / f"start-{len(self._lives) + 1}")
        self._lives.append(life)
        return life

    def _is_done(self) -> bool:
        return not self._pending and self._blow is None

    def _has_ended(self) -> bool:
        return any(state.committed().ended for state in self._place.states().values())

    def _notice(self) -> None:
        now = time.monotonic()
        states = self._place.states().values()
        epoch, recorded = max(((state.committed().epoch, -state.committed_at()) for state in states), default=(0, 0.0))
        if epoch > self._epoch:
            # Not when it was seen: on a busy machine this process comes late, too.
            self.delivered.append((min(now, now - (time.time() + recorded)), epoch))
        if now - self._asked > _ASK_SECONDS and (self._place.home.path / "coordinator.sqlite").exists():
            self._asked = now
            self._ask()
            if self.safe_from is None and self._all_safe(0):
                self.safe_from = now
        self._ways.look(Scene(self._epoch, len(self._lives), len(self._strikes)))

    def _ask(self) -> None:
        try:
            with opened_roster(self._place.home.coordinator) as roster:
                self._members, self._told = roster.members(), roster.told()
        except CoordinationError:
            return
        # Numbers are given out again: those of which nothing is left are forgotten.
        present = {member.process for member in self._members.values()}
        self.sessions = present | {session for session in self.sessions - present if Session(session).survivors()}

    def _all_safe(self, after: int) -> bool:
        """Whether all replicas are there, have done an epoch after that one, and have caught up."""
        names = [str(number) for number in range(1, self._replicas.number + 1)]
        return all_safe(names, self._members, self._told, after)

    # -- disturbing -----------------------------------------------------------------------------

    def _go_on(self, life: Life) -> None:
        if self._blow is not None:
            self._look_at(self._blow)
            return
        now = time.monotonic()
        if not self._pending or self._pending[0].epoch > self._epoch or not self._all_safe(0):
            self._due = None
        elif self._due is None:
            since = self.stretches[-1][1] if self.stretches else now
            self._due = max(now, since + self._rest) + self._pending[0].into * self._replicas.interval
        elif now >= self._due:
            self._due = None
            self._strike(self._pending[0], life)

    def _strike(self, one: Disturbance, life: Life) -> None:
        blow = _Blow(one, time.monotonic(), self._epoch)
        if one.moment is not None:
            blow.fallen = False
            self._arming(one).touch()
        elif one.act is Act.KILL_SUPERVISOR:
            life.kill_all()
        else:
            member = self._members.get(str(one.replica))
            if member is None:
                return  # it has come to the end of the input
            victim = Session(member.process)
            match one.act:
                case Act.FREEZE:
                    blow.frozen = victim
                    victim.freeze()
                case Act.KILL_ALL:
                    victim.kill_all()
                case act:
                    if not victim.kill(VICTIMS[act], one.choice):
                        return  # it has none of these now; the next look tries again
        self._pending.remove(one)
        self._blow = blow

    def _look_at(self, blow: _Blow) -> None:
        """What has come of a blow so far."""
        now = time.monotonic()
        if not blow.fallen:
            done = read_marker(self._marker(blow.disturbance))
            if done is not None:
                blow.fallen, blow.began, blow.epoch = True, self._began + done.time - self._began_clock, done.epoch
            elif now - blow.began > _MOMENT_SECONDS:
                self._arming(blow.disturbance).unlink(missing_ok=True)
                self._blow = None
                self._struck(Strike(blow.disturbance, now - self._began, blow.epoch, "not done: nobody came there"))
            return
        if blow.frozen is not None and now - blow.began > blow.disturbance.seconds:
            blow.frozen.thaw()
            blow.frozen = None
        if blow.frozen is None and self._all_safe(blow.epoch + 1):
            self._recovered(blow, "")

    def _recovered(self, blow: _Blow, but: str) -> None:
        now = time.monotonic()
        self._blow = None
        self.stretches.append((blow.began, now))
        said = but or f"all safe again after {now - blow.began:.1f} s"
        self._struck(Strike(blow.disturbance, blow.began - self._began, blow.epoch, said))

    def _struck(self, strike: Strike) -> None:
        self._strikes.append(strike)
        self._ways.tell(strike)

    def _marker(self, one: Disturbance) -> Path:
        return self._scratch / "markers" / str(one.number)

    def _arming(self, one: Disturbance) -> Path:
        return self._scratch / "markers" / f"{one.number}.armed"

