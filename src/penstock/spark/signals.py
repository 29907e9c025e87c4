"""What a run's driver and its readers tell each other through files in the state folder.

Files, and not the coordinator: a run must be able to stop, and to say that it waits, while the coordinator is away.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.spark.recent_states import FOLDER as RECENT
from penstock.spark.rounds import FOLDER as ROUNDS


class Signals:
    """The signals of one run; `run` is the id of this start."""

    def __init__(self, state: Path, run: str) -> None:
        self._stop = state / f"stop-{run}"
        self._away = state / f"coordinator-away-{run}"
        self._of_tasks = (state / ROUNDS, state / RECENT)
        self._said_away = False

    def want_stop(self) -> None:
        """From now on no further epoch is cut."""
        self._stop.touch()

    def stop_wanted(self) -> bool:
        return self._stop.exists()

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
        self._stop.unlink(missing_ok=True)
        self._away.unlink(missing_ok=True)

    def clear_tasks(self) -> None:
        """Remove what tasks have left for each other, also those of a run that was killed."""
        for folder in self._of_tasks:
            shutil.rmtree(folder, ignore_errors=True)
