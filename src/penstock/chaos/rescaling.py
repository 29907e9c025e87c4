"""A rescale in the middle of a trial: asked of the run, and done by the command when the run dies before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.chaos.life import Life, clear_error, wait_until
from penstock.chaos.schedule import Disturbance
from penstock.runtime.rescale_request import Reply, ask, reply_to, withdraw
from penstock.runtime.state_folder import StateFolder


@dataclass(frozen=True)
class RescaleOutcome:
    """What came of a rescale."""

    said: str
    trouble: bool = False
    """Whether it should not have come to this."""


TOO_LATE = RescaleOutcome("not done: the input had come to its end")


class Rescaling:
    """One rescale, from the request to its outcome."""

    def __init__(self, state: StateFolder, process: int, wanted: Disturbance) -> None:
        """Ask the process that runs the topology, as `penstock rescale` does."""
        self._state = state
        self._wanted = wanted
        self._request = ask(state, process, wanted.operator, wanted.instances)
        self._last: Reply | None = None

    def stirs(self) -> bool:
        """Whether the run has said something new about it."""
        before, self._last = self._last, reply_to(self._state, self._request)
        return self._last is not None and self._last != before

    def outcome(self) -> RescaleOutcome | None:
        """What came of it; None while the run is at it, or has died."""
        if self._last is None or (self._last.done is None and self._last.refused is None):
            return None
        withdraw(self._state, self._request)
        if self._last.done is None:
            return RescaleOutcome(f"not done: {self._last.refused}", trouble=True)
        done = self._last.done
        how = "while it ran" if done["went_on"] else "and it was stopped"
        return RescaleOutcome(f"{done['before']} instances became {done['after']} after epoch {done['epoch']}, {how}")

    def by_command(self, command: Sequence[str], folder: Path, log: Path, patience: float) -> RescaleOutcome:
        """Let `penstock rescale` do it, as the command does that has asked a run which is gone now."""
        withdraw(self._state, self._request)
        wanted = f"{self._wanted.operator}={self._wanted.instances}"
        life = Life([*command, wanted, "--state", str(folder)], {}, log)
        try:
            wait_until(lambda: life.code() is not None, patience)
            code = life.code()
        finally:
            life.kill_all()
        if code == 0:
            return RescaleOutcome("done by the command, because the run had died before")
        why = f"did not end within {patience:.0f} s" if code is None else clear_error(life.said()) or "no clear error"
        return RescaleOutcome(f"not done: the command ended with {code}: {why}", trouble=True)
