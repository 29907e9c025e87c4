"""What a rehearsal found: as data for a file, and as lines to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from penstock.chaos.schedule import Act
from penstock.chaos.trial import Outcome, Strike
from penstock.chaos.verdict import Verdict
from penstock.topology.model import Delivery

_KILL = "kill -9"


@dataclass(frozen=True)
class Report:
    """Everything that a rehearsal did and found."""

    topology: str
    delivery: Delivery
    seed: int
    sets: tuple[str, ...]
    """The settings of both runs."""
    tuples: int
    reference: Outcome
    disturbed: Outcome
    verdicts: tuple[Verdict, ...]
    """One for each sink whose rows can be read again; none when the disturbed run did not come to its end."""
    left_out: tuple[str, ...]
    """The sinks that could not be compared."""
    breaches: tuple[str, ...]
    """How the promise was broken; none when it was kept."""
    notes: tuple[str, ...] = ()
    gap_goal: bool = False
    """Whether a gap that people notice is a failure, too."""

    @property
    def kept(self) -> bool:
        """Whether the promise of `delivery` was."""
        return not self.breaches

    @property
    def noticed(self) -> bool | None:
        """Whether a gap around a blow was longer than the goal, which replicas have; None without replicas.

        A promise of its own: nothing is lost, and on a machine with other work a gap may be that work's.
        """
        return None if self.disturbed.gaps is None else not self.disturbed.gaps.hidden

    @property
    def passed(self) -> bool:
        return self.kept and not (self.gap_goal and self.noticed)

    def to_json(self) -> dict[str, Any]:
        """For a report file: plain values, and the conclusion first."""
        fields = {name: value for name, value in self.__dict__.items() if name not in ("reference", "disturbed")}
        return {
            "passed": self.passed,
            "kept": self.kept,
            "noticed": self.noticed,
            **fields,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "reference": _outcome_json(self.reference),
            "disturbed": _outcome_json(self.disturbed),
        }

    def lines(self) -> list[str]:
        """The verdict in a few lines, the most important last."""
        lines = [f"note: {note}" for note in self.notes]
        undone = [strike for strike in self.disturbed.strikes if not was_done(strike)]
        if undone:
            lines.append(f"note: {len(undone)} of {len(self.disturbed.strikes)} disturbances were not done, see above")
        lines += [f"note: sink '{name}' was left out: it keeps no rows to compare" for name in self.left_out]
        lines.append(self._pause() if self.disturbed.gaps is None else str(self.disturbed.gaps))
        if self.delivery is Delivery.AT_MOST_ONCE:
            lost = self.disturbed
            lines.append(f"skipped {lost.lost_epochs} epochs, which cost {lost.lost_tuples:,} tuples")
        for verdict in self.verdicts:
            lines.append(f"{verdict.sink}: {verdict} (of {verdict.rows:,} rows)")
            lines += [f"    {example}" for example in verdict.examples]
        lines += [f"broken: {breach}" for breach in self.breaches]
        again = f"the same again: --seed {self.seed}"
        promise = f"{self.delivery} {'kept' if self.kept else 'BROKEN'}{', A GAP WAS NOTICED' if self.noticed else ''}"
        lines.append(f"{promise} under {self._blows()} ({again})")
        return lines

    def _pause(self) -> str:
        trial = self.disturbed
        return (
            f"{trial.epochs} epochs in {trial.seconds:.0f} s and {trial.starts} starts "
            f"(undisturbed {self.reference.seconds:.0f} s); "
            f"longest pause {trial.longest_pause:.1f} s, after epoch {trial.paused_after}"
        )

    def _blows(self) -> str:
        done = [strike for strike in self.disturbed.strikes if was_done(strike)]
        kills = sum(strike.disturbance.act.startswith(_KILL) for strike in done)
        rescales = sum(strike.disturbance.act is Act.RESCALE for strike in done)
        divided = f", {rescales} rescale{'' if rescales == 1 else 's'}" if rescales else ""
        return f"{kills} kills{divided} and {len(done) - kills - rescales} other disturbances"


def was_done(strike: Strike) -> bool:
    return strike.seconds is not None and not strike.outcome.startswith("not done")


def strike_json(strike: Strike) -> dict[str, Any]:
    """A strike as one flat object."""
    one = strike.disturbance
    return {
        "number": one.number,
        "act": str(one) if one.act is Act.RESCALE else one.act.value,
        "moment": one.moment,
        "epoch": strike.epoch,
        "seconds": None if strike.seconds is None else round(strike.seconds, 3),
        "done": was_done(strike),
        "outcome": strike.outcome,
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    gaps = None if outcome.gaps is None else {**asdict(outcome.gaps), "goal": outcome.gaps.goal}
    return {**asdict(outcome), "strikes": [strike_json(strike) for strike in outcome.strikes], "gaps": gaps}
