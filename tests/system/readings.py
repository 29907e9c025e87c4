"""A small topology of a few dozen epochs, run by real `penstock` processes that tests interrupt."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK

EPOCHS = 24
ROWS_IN_EPOCH = 5
SENSORS = ("kitchen", "cellar", "roof")

TOPOLOGY = """\
topology: readings
epoch: {max_tuples: 5}
sources:
  readings: {file: readings.csv, header: true, schema: "n int, sensor string"}
operators:
  odd:    {from: readings, filter: "n % 2 = 1"}
  counts: {from: odd, count: sensor}
sinks:
  odd:    {from: odd, file: out/odd.jsonl}
  counts: {from: counts, file: out/counts.jsonl}
"""

TICKS = """\
topology: readings
epoch: {interval: 200ms}
sources:
  ticks: {generator: {id: sequence, key: "choice(a, b, c)"}, rate: 50}
operators:
  counted: {from: ticks, count: key}
sinks:
  counts: {from: counted, file: out/counts.jsonl}
"""
"""A stream without end."""


def readings(first: int = 0, rows: int = EPOCHS * ROWS_IN_EPOCH) -> str:
    lines = (f"{n},{SENSORS[n % 3]}\n" for n in range(first, first + rows))
    return "n,sensor\n" + "".join(lines)


Output = dict[str, list[str]]
"""By sink, its lines, sorted: two runs that leave the same have neither lost nor doubled anything."""


class Project:
    """A folder with the topology and its input, and what a run leaves in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "topology.yaml"
        self.input = folder / "readings.csv"
        self.state = folder / ".penstock/readings"

    @classmethod
    def new(cls, folder: Path, topology: str = TOPOLOGY) -> Project:
        folder.mkdir(parents=True, exist_ok=True)
        project = cls(folder)
        project.file.write_text(topology)
        project.input.write_text(readings())
        return project

    def copied_to(self, folder: Path) -> Project:
        """The same project in another place, with its state and its output."""
        shutil.copytree(self.folder, folder)
        return Project(folder)

    @property
    def epoch(self) -> int:
        """The last epoch that is committed."""
        try:
            return int(json.loads((self.state / "committed").read_text())["epoch"])
        except FileNotFoundError:
            return 0

    def output(self) -> Output:
        return {path.stem: sorted(path.read_text().splitlines()) for path in self.folder.glob("out/*.jsonl")}

    def run(
        self, *arguments: str, command: str = "run", patience: float = PATIENCE_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return subprocess.run(
            [PENSTOCK, command, *arguments], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=patience, check=False)

    @contextmanager
    def running(self, *arguments: str, as_json: bool = True) -> Iterator[Running]:
        """A run in a process group of its own, of which nothing is left afterwards."""
        command = [str(PENSTOCK), "run", *arguments, *(["--json"] if as_json else [])]
        # Files and no pipes: nobody has to read what it says for it to go on. Not in the project: its disk may be full.
        with TemporaryDirectory() as beside:
            said, errors = Path(beside, "said"), Path(beside, "errors")
            with said.open("w") as out, errors.open("w") as err:
                process = subprocess.Popen(
                    command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            run = Running(self, process, said, errors)
            try:
                yield run
            finally:
                run.kill()

    def stop_after(self, epoch: int) -> None:
        """Run until this epoch is committed, and stop it as Ctrl-C does."""
        with self.running() as run:
            run.until_epoch(epoch)
            run.signal_group(signal.SIGINT)
            assert run.finish() == 0, run.errors
            run.has_said_that_it_was_stopped()


def undisturbed_output(folder: Path) -> Output:
    """What a run leaves that nobody disturbs."""
    project = Project.new(folder)
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert project.epoch == EPOCHS
    return project.output()


class Running:
    """One `penstock run --json`."""

    def __init__(self, project: Project, process: subprocess.Popen[bytes], said: Path, errors: Path) -> None:
        self._project = project
        self._process = process
        self._said = said
        self._errors = errors

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def events(self) -> list[Any]:
        """What it has said so far; a line that is being written is left for later."""
        lines = self._said.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that it does before it ends."""
        wait_until(condition, PATIENCE_SECONDS, lambda: self._process.poll() is None, self._last_words)

    def until_epoch(self, epoch: int) -> None:
        self.until(lambda: self._project.epoch >= epoch)

    def signal(self, number: int) -> None:
        """To the process alone, as `kill` does."""
        self._process.send_signal(number)

    def signal_group(self, number: int) -> None:
        """To the whole process group, as Ctrl-C does."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        if self._process.poll() is None:
            self.signal_group(signal.SIGKILL)
        self._process.wait()

    def finish(self) -> int:
        """Its exit code, when it has ended by itself."""
        return self._process.wait(timeout=PATIENCE_SECONDS)

    def has_said_that_it_was_stopped(self) -> None:
        last = self.events()[-1]
        assert (last["event"], last["epoch"]) == ("end", self._project.epoch)
        assert last["how"].endswith("the same command goes on from here")

    def _last_words(self) -> str:
        return f"{self.errors}\n{self._said.read_text()[-500:]}"
