"""Run a topology to its end, starting it again after every death, while it is disturbed by a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from penstock.chaos.damage import Damage, damage
from penstock.chaos.gaps import GapReport
from penstock.chaos.life import Life, clear_error, wait_until
from penstock.chaos.pulse import Pulse
from penstock.chaos.rescaling import TOO_LATE, RescaleOutcome, Rescaling
from penstock.chaos.schedule import TAMPERING, VICTIMS, Act, Disturbance
from penstock.chaos.small_disk import Disk
from penstock.epochs.moments import VARIABLE, Deed, read_marker, write_plan
from penstock.runtime.state_folder import StateFolder

_POLL_SECONDS = 0.02
_LINGER_SECONDS = 15.0
"""How long what is left of a killed run may take to notice."""
_TAIL_LINES = 20
_FRUITLESS = 2
"""So many deaths in a row without progress and without a disturbance, and it will not recover by itself."""


@dataclass(frozen=True)
class Strike:
    """A disturbance as it happened."""

    disturbance: Disturbance
    seconds: float | None
    """After the start of the trial; None when it did not come to it."""
    epoch: int
    """The epoch that was in flight."""
    outcome: str = ""
    """What came of it, where that is not told by the verdict."""


@dataclass(frozen=True)
class Scene:
    """How a trial stands."""

    epoch: int = 0
    starts: int = 0
    strikes: int = 0


@dataclass(frozen=True)
class Outcome:
    """How a trial went."""

    ended: bool
    epochs: int
    lost_epochs: int
    lost_tuples: int
    """What at-most-once gave up, by its own account."""
    seconds: float
    starts: int
    longest_pause: float
    paused_after: int
    strikes: tuple[Strike, ...] = ()
    troubles: tuple[str, ...] = ()
    """What a run must never do, whatever happens to it: hang, fail for good, end without saying why."""
    notes: tuple[str, ...] = ()
    gaps: GapReport | None = None
    """Of replicas: whether their failures could be noticed."""
    first: float = 0.0
    """Seconds from the start to the first epoch."""


@dataclass(frozen=True)
class Ways:
    """How a trial starts its runs, and whom it tells."""

    command: Sequence[str]
    """`penstock run` and its arguments, without the folders."""
    patience: float = 120.0
    """Seconds in which a run must commit an epoch or end."""
    look: Callable[[Scene], None] = field(default=lambda _: None)
    """Shown how it stands, many times a second."""
    tell: Callable[[Strike], None] = field(default=lambda _: None)
    """Told of every strike."""
    rescale: Sequence[str] = ()
    """`penstock rescale` and its arguments, without the folder, the operator and the number."""


class Step(Enum):
    """What to do after a death."""

    FINISH = "finish"
    RESTART = "restart"
    PUT_BACK = "put back"
    GIVE_UP = "give up"


def next_step(code: int, ended: bool, stirred: bool, damaged: bool, fruitless: int) -> Step:
    """`stirred`: since its start it was disturbed or got further. `fruitless`: how many lives before were not.

    A run that refuses damaged files is in its right: they are put back, as its user would do.
    """
    if ended:
        return Step.FINISH
    if code == 2:
        return Step.GIVE_UP
    if stirred:
        return Step.RESTART
    if damaged:
        return Step.PUT_BACK
    return Step.GIVE_UP if fruitless + 1 >= _FRUITLESS else Step.RESTART


class Trial:
    """One run of the topology over as many lives as it takes. `run` once."""

    def __init__(self, ways: Ways, disk: Disk, scratch: Path) -> None:
        """The run writes to `disk` only; `scratch` takes its logs, markers and copies."""
        self._ways = ways
        self._disk = disk
        self._scratch = scratch
        self._state = StateFolder(disk.folder / "state")
        self._pulse = Pulse()
        self._pending: list[Disturbance] = []
        self._strikes: list[Strike] = []
        self._troubles: list[str] = []
        self._notes: list[str] = []
        self._lives: list[Life] = []
        self._damage: tuple[Damage, Disturbance] | None = None
        self._rescaling: tuple[Rescaling, Strike] | None = None
        self._moved = 0.0
        self._first = 0.0

    def run(self, disturbances: Sequence[Disturbance] = ()) -> Outcome:
        """To the end of the input, or until it is plain that it will not get there.

        Whatever happens, also Ctrl-C, no process is left behind.
        """
        self._pending = list(disturbances)
        self._began, self._began_clock = time.monotonic(), time.time()
        try:
            ended = self._through_all_lives()
            seconds = time.monotonic() - self._began
            self._note_stragglers()
        finally:
            for life in self._lives:
                life.kill_all()
        self._strikes += [Strike(one, None, one.epoch, "not reached") for one in self._pending]
        self._strikes.sort(key=lambda strike: (strike.seconds is None, strike.seconds or 0.0))
        committed = self._state.committed()
        return Outcome(
            ended, self._pulse.epoch, committed.lost_epochs, committed.lost_tuples, seconds, len(self._lives),
            self._pulse.longest_pause, self._pulse.paused_after, tuple(self._strikes), tuple(self._troubles),
            tuple(self._notes), first=self._first,
        )  # fmt: skip

    def _through_all_lives(self) -> bool:
        # Undisturbed, the first failure is for good.
        fruitless = 0 if self._pending else _FRUITLESS - 1
        while True:
            epoch, strikes = self._pulse.epoch, len(self._strikes)
            life = self._start()
            code = self._live(life)
            self._notice()
            self._rescale_without_run()
            stirred = self._pulse.epoch > epoch or len(self._strikes) > strikes
            if code == 1 and clear_error(life.said()) is None:
                self._notes.append(f"start {len(self._lives)} ended without a clear error")
            step = next_step(code, self._state.committed().ended, stirred, self._damage is not None, fruitless)
            fruitless = 0 if stirred else fruitless + 1
            if step is Step.FINISH:
                return True
            if step is Step.PUT_BACK:
                self._put_back(life)
                fruitless = 0
            if step is Step.GIVE_UP:
                why = clear_error(life.said()) or _tail(life.said())
                self._troubles.append(
                    f"after epoch {self._pulse.epoch} the run ended with {code}, though nothing was done to it: {why}"
                )
                return False

    # -- one life -------------------------------------------------------------------------------

    def _start(self) -> Life:
        deeds = [
            Deed(one.moment, one.epoch, VICTIMS[one.act], str(self._marker(one)))
            for one in self._pending
            if one.moment is not None
        ]
        self._scratch.joinpath("markers").mkdir(parents=True, exist_ok=True)
        # Its own epoch log too: one that the user shares with other runs must not see these epochs.
        folders = ["--state", str(self._state.path), "--scratch", str(self._disk.folder / "out"),
                   "--coordinator", self._state.coordinator]  # fmt: skip
        life = Life(
            [*self._ways.command, *folders],
            {VARIABLE: write_plan(deeds)} if deeds else {},
            self._scratch / "logs" / f"start-{len(self._lives) + 1}",
        )
        self._lives.append(life)
        self._pulse.start()
        self._moved = life.born
        return life

    def _live(self, life: Life) -> int:
        """Watch and disturb it until its driver is dead; how it ended."""
        while (code := life.code()) is None:
            self._notice()
            due = self._next_blow()
            if time.monotonic() - self._moved > self._ways.patience:
                self._bury_hanging(life, f"did nothing for {self._ways.patience:.0f} s")
            elif due is not None and life.at_work():
                self._strike(life, due)
            time.sleep(_POLL_SECONDS)
        return code

    def _next_blow(self) -> Disturbance | None:
        """What is to be done to the run now; nothing while it is open what comes of damage, or of a rescale."""
        one = next((one for one in self._pending if one.moment is None), None)
        open_end = self._damage is not None or self._rescaling is not None
        return one if one is not None and not open_end and self._pulse.epoch >= one.epoch else None

    def _notice(self) -> None:
        """See what the run has done by itself: epochs it committed, and deeds of the plan."""
        now = time.monotonic()
        if self._pulse.note(self._state.committed().epoch, now):
            self._moved = now
            self._first = self._first or now - self._began
            self._damage_survived()
        for one in [one for one in self._pending if one.moment is not None]:
            done = read_marker(self._marker(one))
            if done is not None:
                self._struck(Strike(one, done.time - self._began_clock, done.epoch))
        self._look_at_rescale()
        self._ways.look(Scene(self._pulse.epoch, len(self._lives), len(self._strikes)))

    def _strike(self, life: Life, one: Disturbance) -> None:
        if self._dead_within(life, one.into * self._pulse.pace):
            return
        strike = Strike(one, time.monotonic() - self._began, self._pulse.epoch + 1)
        match one.act:
            case Act.FREEZE:
                life.freeze_for(one.seconds)
            case Act.RESTART:
                life.terminate()
                self._struck(strike)
                self._see_it_die(life, "after SIGTERM")
                return
            case Act.RESCALE:
                self._rescaling = Rescaling(self._state, life.session, one), strike
                return
            case Act.KILL_ALL:
                life.kill_all()
            case Act.FILL_DISK:
                strike = replace(strike, outcome=self._without_room(life))
            case act if act in TAMPERING:
                life.kill_all()
                strike = replace(strike, outcome=self._tamper(one))
            case act:
                if not life.kill(VICTIMS[act], one.choice):
                    return
        self._struck(strike)

    def _struck(self, strike: Strike) -> None:
        self._pending.remove(strike.disturbance)
        self._strikes.append(strike)
        self._moved = time.monotonic()
        self._ways.tell(strike)

    def _see_it_die(self, life: Life, when: str) -> None:
        if not self._dead_within(life, self._ways.patience):
            self._bury_hanging(life, f"was still there {self._ways.patience:.0f} s {when}")

    def _dead_within(self, life: Life, seconds: float) -> bool:
        """Go on watching for so long; whether it died meanwhile."""

        def dead() -> bool:
            self._notice()
            return life.code() is not None

        return wait_until(dead, seconds)

    def _bury_hanging(self, life: Life, what: str) -> None:
        after = f" ({self._strikes[-1].disturbance} before that)" if self._strikes else ""
        self._troubles.append(f"after epoch {self._pulse.epoch} the run {what}{after}, and had to be killed")
        life.kill_all()

    # -- damage ---------------------------------------------------------------------------------

    def _tamper(self, one: Disturbance) -> str:
        # What it committed before it was killed is no sign that it recovered.
        self._notice()
        done = damage(one.act, self._state.checkpoint, self._scratch / "copies")
        if done is None:
            return "not done: the checkpoint has no such file"
        self._damage = (done, one)
        return ""

    def _damage_survived(self) -> None:
        if self._damage is not None:
            self._decide_damage("recovered")

    def _put_back(self, life: Life) -> None:
        assert self._damage is not None
        done, one = self._damage
        said = clear_error(life.said())
        if said is None:
            self._troubles.append(f"{one.act}: the run ended without a clear error: {_tail(life.said())}")
        done.put_back()
        self._decide_damage(f"refused, and put back: {said or 'no clear error'}")

    def _decide_damage(self, outcome: str) -> None:
        assert self._damage is not None
        _, one = self._damage
        self._damage = None
        self._strikes = [
            replace(strike, outcome=outcome) if strike.disturbance == one else strike for strike in self._strikes
        ]

    def _without_room(self, life: Life) -> str:
        if self._disk.refused:
            return f"not done: {self._disk.refused}"
        try:
            self._disk.fill()
            self._see_it_die(life, "with its disk full")
        finally:
            self._disk.free()
        said = clear_error(life.said())
        if said is None:
            self._troubles.append(f"with its disk full the run ended without a clear error: {_tail(life.said())}")
        return f"it said: {said or 'nothing clear'}"

    # -- rescales -------------------------------------------------------------------------------

    def _look_at_rescale(self) -> None:
        if self._rescaling is not None:
            rescaling, _ = self._rescaling
            if rescaling.stirs():
                self._moved = time.monotonic()
            self._rescaled(rescaling.outcome())

    def _rescale_without_run(self) -> None:
        """The run has died before it was done with a rescale: the command does it, before the next start."""
        if self._rescaling is None:
            return
        if self._state.committed().ended:
            self._rescaled(TOO_LATE)
        else:
            log = self._scratch / "logs" / f"rescale-{len(self._lives)}"
            rescaling, _ = self._rescaling
            self._rescaled(rescaling.by_command(self._ways.rescale, self._state.path, log, self._ways.patience))

    def _rescaled(self, outcome: RescaleOutcome | None) -> None:
        if outcome is None or self._rescaling is None:
            return
        _, strike = self._rescaling
        self._rescaling = None
        self._struck(replace(strike, outcome=outcome.said))
        if outcome.trouble:
            self._troubles.append(f"{strike.disturbance}: {outcome.said}")

    # -- afterwards -----------------------------------------------------------------------------

    def _note_stragglers(self) -> None:
        if not wait_until(lambda: not any(life.survivors() for life in self._lives), _LINGER_SECONDS):
            number = sum(life.survivors() for life in self._lives)
            self._notes.append(f"{number} processes of killed runs were still there {_LINGER_SECONDS:.0f} s later")

    def _marker(self, one: Disturbance) -> Path:
        return self._scratch / "markers" / str(one.number)


def _tail(said: str) -> str:
    lines = said.strip().splitlines()
    return "\n    ".join(["", *lines[-_TAIL_LINES:]]) if lines else "it said nothing"
