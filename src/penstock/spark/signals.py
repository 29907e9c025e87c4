"""What a run's driver and its readers tell each other through files in the state folder.

Files, and not the coordinator: a run must be able to stop, and to say that it waits, while the coordinator is away.
"""

from __future__ import annotations

import shutil
from enum import StrEnum
from pathlib import Path

from penstock.spark.recent_states import FOLDER as RECENT
from penstock.spark.rounds import FOLDER as ROUNDS


class Held(StrEnum):
    """What a run is not to do."""

    NOT = ""
    RECEIVING = "receiving"
    """It begins no further epoch, and cuts them all the same: they are done when it goes on."""
    STILL = "still"
    """It neither begins nor cuts one."""


class Signals:
    """The signals of one run; `run` is the id of this start."""

    def __init__(self, state: Path, run: str) -> None:
        self._stop = state / f"stop-{run}"
        self._away = state / f"coordinator-away-{run}"
        self._held = state / f"held-{run}"
        self._ahead = state / f"received-{run}"
        self._of_tasks = (state / ROUNDS, state / RECENT)
        self._said_away = False

    def want_stop(self) -> None:
        """From now on no further epoch is cut."""
        self._stop.touch()

    def stop_wanted(self) -> bool:
        return self._stop.exists()

    def hold(self, held: Held) -> None:
        """From now on it is so held, until something else is said."""
        if held is not Held.RECEIVING:
            self._ahead.unlink(missing_ok=True)
        if held is Held.NOT:
            self._held.unlink(missing_ok=True)
        else:
            draft = self._held.with_suffix(".draft")
            draft.write_text(held)
            draft.replace(self._held)

    def held(self) -> Held:
        try:
            return Held(self._held.read_text())
        except FileNotFoundError:
            return Held.NOT

    def note_received(self, epochs: int) -> None:
        """So many epochs are cut, and wait for the run to go on."""
        self._ahead.write_text(str(epochs))

    def received(self) -> int:
        try:
            return int(self._ahead.read_text() or 0)
        except FileNotFoundError:
            return 0

    def coordinator_away(self, why: str) -> None:
        """No epoch can be cut until it is back."""
        if not self._said_away:
            self._away.write_text(why)
            self._said_away = True

    def coordinator_back(self) -> None:
        if self._said_away:
            self._away.unlink(missing_ok=True)
            self._said_away = False

    def why_away(self) -> str | None:
        """Why no epoch can be cut; None while all is well."""
        try:
            return self._away.read_text()
        except FileNotFoundError:
            return None

    def clear(self) -> None:
        """Remove every signal of this run, and what its tasks have left for each other."""
        self.clear_tasks()
        for signal in (self._stop, self._away, self._held, self._ahead):
            signal.unlink(missing_ok=True)

    def clear_tasks(self) -> None:
        """Remove what tasks have left for each other, also those of a run that was killed."""
        for folder in self._of_tasks:
            shutil.rmtree(folder, ignore_errors=True)
