"""`penstock rescale` of a topology that runs: it goes on by itself, whoever is killed on the way."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .penstock_command import PATIENCE_SECONDS, PENSTOCK
from .readings import EPOCHS, ROWS_IN_EPOCH, TOPOLOGY, Output, Project, Running, readings

FOLLOWING = TOPOLOGY.replace("header: true,", "header: true, follow: true,")
HALF = EPOCHS // 2


def following(folder: Path) -> Project:
    """A run of it waits for more when it has read the first half of the input."""
    project = Project.new(folder, FOLLOWING)
    project.input.write_text(readings(rows=HALF * ROWS_IN_EPOCH))
    return project


def append(project: Project, epochs: int) -> None:
    """So much more of the input, from where it ends."""
    there = len(project.input.read_text().splitlines()) - 1
    more = readings(there, epochs * ROWS_IN_EPOCH).partition("\n")[2]
    with project.input.open("a") as file:
        file.write(more)


@contextmanager
def rescaling(project: Project, wanted: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process group of its own, of which nothing is left afterwards."""
    process = subprocess.Popen(
        [PENSTOCK, "rescale", ".", wanted, "--json"], cwd=project.folder, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def instances(project: Project) -> int:
    return int(json.loads((project.state / "shape").read_text())["state partitions"])


def stop(run: Running) -> None:
    run.signal_group(signal.SIGINT)
    assert run.finish() == 0, run.errors


def test_a_running_topology_is_rescaled_and_runs_on(tmp_path: Path, undisturbed: Output) -> None:
    project = following(tmp_path)
    with project.running() as run:
        run.until_epoch(3)
        done = project.run(".", "counts=5", "--json", command="rescale")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["before"], told["after"], told["went_on"], told["stopped"]) == (2, 5, True, False)
        assert "dividing the state of epoch" in done.stderr
        run.until_epoch(HALF)
        refused = project.run(".", "odd=3", command="rescale")
        assert refused.returncode == 2
        # Whoever asked may be gone meanwhile.
        with rescaling(project, "counts=3") as command:
            run.until((project.state / "prepared").exists)
            command.kill()
        run.until(lambda: instances(project) == 3)
        append(project, HALF)
        run.until_epoch(EPOCHS)
        stop(run)
    assert project.output() == undisturbed


def test_a_run_that_is_killed_while_it_rescales_leaves_it_to_the_command(tmp_path: Path, undisturbed: Output) -> None:
    project = following(tmp_path)
    with project.running() as run:
        run.until_epoch(3)
        with rescaling(project, "counts=5") as command:
            run.until((project.state / "prepared" / "checkpoint").exists)
            run.kill()
            said, errors = command.communicate(timeout=PATIENCE_SECONDS)
        assert command.returncode == 0, errors
        told = json.loads(said)
        assert (told["before"], told["after"], told["went_on"]) == (2, 5, False)
    assert instances(project) == 5
    append(project, HALF)
    with project.running() as run:
        run.until_epoch(EPOCHS)
        stop(run)
    assert project.output() == undisturbed
    assert not list(project.state.glob("rescale-*"))
