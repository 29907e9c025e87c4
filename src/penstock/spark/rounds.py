"""Keep the sources of one micro-batch in the same epoch.

Spark asks every source once for each micro-batch, one after the other. If the first answered 'nothing new' and a
replica cut the next epoch a moment later, the second would find it: one micro-batch would mix two epochs. So the
first that is asked writes down its answer, and the others give the same one.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = "rounds"


class Rounds:
    """The answers of one run, told from reader to reader by files: all readers run on the driver's machine."""

    def __init__(self, state: Path, run: str) -> None:
        self._folder = state / FOLDER
        self._run = run
        self._asked = 0

    def next(self) -> int | None:
        """Begin the next round; the epoch that was answered in it, or None when this reader is the first."""
        self._asked += 1
        try:
            return int(self._answer(self._asked).read_text())
        except FileNotFoundError:
            return None

    def answer(self, epoch: int) -> None:
        """This reader is the first and answers with `epoch`."""
        self._folder.mkdir(exist_ok=True)
        draft = self._folder / f".{self._run}"
        draft.write_text(str(epoch))
        draft.replace(self._answer(self._asked))
        self._answer(self._asked - 1).unlink(missing_ok=True)

    def _answer(self, asked: int) -> Path:
        return self._folder / f"{self._run}-{asked}"
