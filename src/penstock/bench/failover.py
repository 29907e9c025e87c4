"""How long output pauses when a replica is killed or frozen, and what replicas cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from penstock.chaos.gaps import Delivered, Stretch, gaps_of, longest_around
from penstock.chaos.replica_trial import ReplicaTrial
from penstock.chaos.schedule import Act, Disturbance
from penstock.chaos.subject import Replicas
from penstock.chaos.trial import Outcome, Scene, Strike, Ways
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.moments import TICKS_PER_SECOND, processes_of
from penstock.epochs.record import EpochRecord
from penstock.errors import DeliveryError
from penstock.runtime.state_folder import StateFolder

_RATE = 1000
_FREEZE_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_QUIET_SECONDS = 20.0
_WARM_SECONDS = 60.0
"""By then a JVM has compiled most of what it runs."""
_REST_SECONDS = 2.0
_UNPACED_TUPLES = 2_000_000
_TOPOLOGY = """\
topology: failover
epoch: {{interval: {interval}, max_tuples: 100000}}
sources:
  ticks: {{generator: {{id: sequence, key: "choice(a, b, c, d)"}}, {pace}}}
operators:
  counted: {{from: ticks, count: key}}
sinks:
  counts: {{from: counted, file: out/counts.jsonl}}
"""


@dataclass(frozen=True)
class FailoverSettings:
    """What is measured."""

    kills: int = 20
    """So many kills, and as many freezes."""
    replicas: tuple[int, ...] = (1, 2, 3)
    steady: float = 60.0
    """Seconds without any blow, for latency and processor time, once the JVMs are warm."""
    interval: float = 0.5
    """Seconds between two epochs."""


@dataclass(frozen=True)
class Measured:
    """One number of replicas."""

    replicas: int
    interval: float
    """Seconds between two epochs."""
    quiet: float
    """Seconds of the longest gap between two epochs while nothing was done."""
    kill_gaps: tuple[float, ...]
    """The longest gap after each kill."""
    freeze_gaps: tuple[float, ...]
    latency: float
    """Seconds from the cut of an epoch to its delivery, the median of a steady stream."""
    cores: float
    """How many cores were busy meanwhile."""
    throughput: float
    """Tuples a second without a pace."""
    ages: tuple[tuple[float, float], ...] = field(repr=False, default=())
    """How old the newest delivered epoch was, by seconds after the first kill."""

    @classmethod
    def from_json(cls, text: str) -> Measured:
        fields = json.loads(text)
        gaps = {name: tuple(fields[name]) for name in ("kill_gaps", "freeze_gaps")}
        return cls(**{**fields, **gaps, "ages": tuple((moment, age) for moment, age in fields["ages"])})

    def with_costs_of(self, other: Measured) -> Measured:
        """These gaps, and what another run found of the costs."""
        return replace(self, latency=other.latency, cores=other.cores, throughput=other.throughput)

    @property
    def hidden(self) -> bool:
        """Whether no gap was longer than the longest one without a blow, and one interval."""
        return max((*self.kill_gaps, *self.freeze_gaps), default=0.0) <= self.quiet + self.interval


Tell = Callable[[str], None]
Command = Callable[[Path], Sequence[str]]
"""The command that runs the topology in a file, with a supervisor."""


def measure_failover(
    settings: FailoverSettings, command: Command, folder: Path, tell: Tell, costs_only: bool = False
) -> Iterator[Measured]:
    """Measure each number of replicas in turn, as they are asked for; raises DeliveryError when a run fails."""
    for number in settings.replicas:
        costs = _costs(number, settings, command, folder / f"{number}-costs", tell)
        if costs_only:
            yield costs
        else:
            yield _gaps(number, settings, command, folder / str(number), tell).with_costs_of(costs)


def _costs(number: int, settings: FailoverSettings, command: Command, folder: Path, tell: Tell) -> Measured:
    """What replicas cost while nothing is done to them; no gaps."""
    tell(f"{number} of {max(settings.replicas)} replicas: a steady stream")
    watch = _Watch(folder / "run" / "state")
    count = round(_RATE * (_WARM_SECONDS + settings.steady))
    ways = Ways(command(_written(folder, f"rate: {_RATE}, count: {count}", settings.interval)), look=watch.look)
    watch.trial = ReplicaTrial(ways, folder / "run", folder / "logs", Replicas(number, settings.interval))
    checked(watch.trial.run())
    tell(f"{number} replicas: as fast as it goes")
    throughput = _throughput(number, command, folder / "unpaced")
    return Measured(number, settings.interval, 0.0, (), (), watch.latency(settings.steady),
                    watch.cores(settings.steady), throughput)  # fmt: skip


def _gaps(number: int, settings: FailoverSettings, command: Command, folder: Path, tell: Tell) -> Measured:
    """What blows do to the output; no costs."""
    watch = _Watch(folder / "run" / "state")

    def struck(strike: Strike) -> None:
        tell(f"{number} replicas: {strike.disturbance}: {strike.outcome}")

    ways = Ways(command(_written(folder, f"rate: {_RATE}", settings.interval)), look=watch.look, tell=struck)
    wanted = Replicas(number, settings.interval)
    trial = ReplicaTrial(ways, folder / "run", folder / "logs", wanted, _REST_SECONDS, endless=True)
    watch.trial = trial
    outcome = checked(trial.run(blows(number, settings)))
    kills, freezes = (
        gaps_around(trial.delivered, [stretch for stretch, strike in zip(trial.stretches, outcome.strikes, strict=True)
                                      if strike.disturbance.act is act])
        for act in (Act.KILL_ALL, Act.FREEZE)
    )
    assert outcome.gaps is not None
    first = trial.stretches[0][0] if trial.stretches else 0.0
    return Measured(
        number, settings.interval, outcome.gaps.quiet, tuple(kills), tuple(freezes), 0.0, 0.0, 0.0,
        tuple((moment - first, age) for moment, age in ages(watch.delivered)),
    )  # fmt: skip


def blows(number: int, settings: FailoverSettings) -> list[Disturbance]:
    """Each replica in turn is killed, and each in turn is frozen; the first blow after some quiet time."""
    first = round(_QUIET_SECONDS / settings.interval)
    acts = [(Act.KILL_ALL, 0.0)] * settings.kills + [(Act.FREEZE, _FREEZE_SECONDS)] * settings.kills
    return [
        Disturbance(place + 1, act, first, into=place * 0.37 % 1, seconds=seconds, replica=place % number + 1)
        for place, (act, seconds) in enumerate(acts)
    ]


def gaps_around(delivered: Sequence[Delivered], stretches: Sequence[Stretch]) -> list[float]:
    """For each stretch, the longest gap that touches it."""
    gaps = list(gaps_of(delivered))
    return [longest_around(gaps, stretch) for stretch in stretches]


def ages(delivered: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """How old the newest delivered epoch is, over time; from when each was delivered, and when it was cut."""
    points: list[tuple[float, float]] = []
    cut_before: float | None = None
    for moment, cut in delivered:
        if cut_before is not None:
            points.append((moment, moment - cut_before))
        points.append((moment, moment - cut))
        cut_before = cut
    return points


class _Watch:
    """Looks at a trial while it runs: when each epoch was cut, and how much the processors had to do."""

    def __init__(self, state: Path) -> None:
        self._state = StateFolder(state)
        self.trial: ReplicaTrial | None = None
        self.delivered: list[tuple[float, float]] = []
        self._epoch = 0
        self._worked: list[tuple[float, float]] = []
        """At some moments, how long the processors had worked for the replicas."""
        self._clock = time.time() - time.monotonic()

    def look(self, scene: Scene) -> None:
        assert self.trial is not None
        if scene.epoch > self._epoch:
            self._epoch = scene.epoch
            self._note(scene.epoch, self.trial.delivered[-1][0])
        now = time.monotonic()
        if not self._worked or now - self._worked[-1][0] > _LOOK_SECONDS:
            sessions = self.trial.sessions
            worked = sum(process.worked for session in sessions for process in processes_of(session))
            self._worked.append((now, worked / TICKS_PER_SECOND))

    def latency(self, seconds: float) -> float:
        """Of the last seconds, the median."""
        since = self.delivered[-1][0] - seconds
        return median(moment - cut for moment, cut in self.delivered if moment > since)

    def cores(self, seconds: float) -> float:
        """How many were busy in the last seconds, up to the last epoch but one: at the end processes go."""
        until = self.delivered[-2][0]
        return busy_cores([each for each in self._worked if until - seconds < each[0] < until])

    def _note(self, epoch: int, moment: float) -> None:
        record = agreed(self._state, epoch)
        if record is not None:
            self.delivered.append((moment, record.time_ms / 1000 - self._clock))


def busy_cores(worked: Sequence[tuple[float, float]]) -> float:
    """From moments, and how long the processors had worked by then."""
    if len(worked) < 2:
        return 0.0
    (began, before), (ended, after) = worked[0], worked[-1]
    return (after - before) / (ended - began)


def agreed(state: StateFolder, epoch: int) -> EpochRecord | None:
    """What the embedded coordinator of a run has as that epoch."""
    coordinator = open_coordinator(state.coordinator)
    try:
        return EpochLog(coordinator).get(epoch)
    finally:
        coordinator.close()


def _throughput(number: int, command: Command, folder: Path) -> float:
    file = _written(folder, f"count: {_UNPACED_TUPLES}", 0)
    trial = ReplicaTrial(Ways(command(file)), folder / "run", folder / "logs", Replicas(number, 0.0))
    checked(trial.run())
    (began, first), (ended, last) = trial.delivered[0], trial.delivered[-1]
    # What the first epoch brought was there before the clock ran.
    return _UNPACED_TUPLES * (last - first) / last / (ended - began)


def _written(folder: Path, pace: str, interval: float) -> Path:
    folder.mkdir(parents=True)
    file = folder / "topology.yaml"
    file.write_text(_TOPOLOGY.format(interval=interval, pace=pace))
    return file


def checked(outcome: Outcome) -> Outcome:
    """Raises DeliveryError when the trial did not come to its end."""
    if not outcome.ended or outcome.troubles:
        raise DeliveryError("; ".join(outcome.troubles) or "the run did not come to its end")
    return outcome
