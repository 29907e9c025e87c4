"""Run one job of one contestant in processes of its own, and look at what it wrote."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peers_jobs.work import Work

from penstock.chaos.life import Session
from side_by_side.answers import Key, answer_of
from side_by_side.contestants import Contestant
from side_by_side.telling import Telling

PROGRAMS = Path(__file__).parents[1] / "peers_jobs"
PATIENCE_SECONDS = 1200.0
_LOOK_SECONDS = 0.5
_REASON_CHARACTERS = 300
_NOISE = ("warn", "info", "\tat ", "   at ", "  File ", "    ")


@dataclass(frozen=True)
class Ran:
    """How one run went: its seconds, or why there are none."""

    seconds: float | None = None
    trouble: str | None = None


class Started:
    """A contestant's program and everything that it has started; gone at the end of `with`."""

    def __init__(self, contestant: Contestant, python: Path, work: Work) -> None:
        self._said = work.folder / "said"
        self._errors = work.folder / "errors"
        command = [str(python), str(PROGRAMS / contestant.program), work.written()]
        with self._said.open("ab") as said, self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, cwd=work.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=errors, start_new_session=True)

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """`kill -9` of all of it."""
        Session(self.process.pid).kill_all()
        self.process.wait()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def last_line(self) -> str:
        lines = self._said.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def reason(self) -> str:
        """What it said of its failure, in one line."""
        said = self._errors.read_text(errors="replace") or self._said.read_text(errors="replace")
        return f"exit code {self.process.returncode}: {telling_line(said)}"


def telling_line(said: str) -> str:
    """The last line of a program's errors that is about the error, and not where in the code it came from."""
    lines = [line for line in said.splitlines() if line.strip() and not line.lower().startswith(_NOISE)]
    causes = [line for line in lines if "Caused by" in line or "Error" in line or "Exception" in line]
    return ((causes or lines or ["it said nothing"])[-1]).strip()[:_REASON_CHARACTERS]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="penstock-peers-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def run_once(
    contestant: Contestant, python: Path, work: Work, counts: Mapping[Key, int], telling: Telling
) -> Ran:
    """To its end, or until patience ends; a run whose rows are not right has no figure."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Started(contestant, python, work) as started:
        while not started.ended():
            if time.monotonic() > deadline:
                return Ran(trouble=f"not done after {PATIENCE_SECONDS:.0f} seconds")
            telling.look()
            time.sleep(_LOOK_SECONDS)
        if started.process.returncode:
            return Ran(trouble=started.reason())
        seconds = reported_seconds(started.last_line())
    if seconds is None:
        return Ran(trouble=f"it ended without its time: {started.reason()}")
    try:
        answer = answer_of(work.job, work.out, work.tuples, counts)
    except ValueError as error:
        return Ran(seconds, f"its result cannot be read: {error}"[:_REASON_CHARACTERS])
    return Ran(seconds) if answer.right else Ran(seconds, f"wrong result: {answer}")


def reported_seconds(line: str) -> float | None:
    """What the last line of a job tells, if it is such a line."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return float(told["seconds"]) if isinstance(told, dict) and "seconds" in told else None
