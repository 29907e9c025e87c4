"""Commands for a running topology, given from another process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.replication.replica import opened_roster
from penstock.replication.roster import FROZEN, Told
from penstock.runtime.state_folder import StateFolder, is_alive

from .readings import TICKS, Project
from .replicated import owner, stream

pytestmark = pytest.mark.by_itself

_QUIET_SECONDS = 2.0
"""Ten epochs long."""


def command(project: Project, name: str, *arguments: str) -> str:
    done = project.run(".", *arguments, command=name)
    assert done.returncode == 0, done.stderr
    return done.stdout


def epoch(project: Project, replica: str | None = None) -> int:
    folder = StateFolder(project.state)
    return (folder if replica is None else folder.replica(replica)).committed().epoch


def received(project: Project) -> int:
    """The newest epoch that is cut."""
    coordinator = open_coordinator(f"sqlite:{project.state / 'coordinator.sqlite'}")
    try:
        newest = EpochLog(coordinator).newest()
        return 0 if newest is None else newest.epoch
    finally:
        coordinator.close()


def stands_still(project: Project) -> Callable[[], bool]:
    """Whether no epoch has come for some time, since it was first asked."""
    last, since = epoch(project), time.monotonic()

    def still() -> bool:
        nonlocal last, since
        now = epoch(project)
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= _QUIET_SECONDS

    return still


def test_a_run_is_frozen_goes_on_is_slowed_down_and_stops(tmp_path: Path) -> None:
    project = Project.new(tmp_path, TICKS)
    with project.running() as run:
        run.until(lambda: epoch(project) > 3)
        assert "frozen" in command(project, "freeze")
        run.until(lambda: any(event.get("waiting", "") and "frozen" in event["waiting"] for event in run.events()))
        # It finishes the epoch that it is in, and begins no other.
        before = epoch(project)
        run.until(stands_still(project))
        assert epoch(project) <= before + 1
        # What comes meanwhile is cut into epochs, with the time at which it came.
        run.until(lambda: received(project) > epoch(project) + 3)
        run.until(lambda: any("epochs to do" in (event.get("waiting") or "") for event in run.events()))
        gathered = received(project)
        command(project, "unfreeze")
        run.until(lambda: epoch(project) > gathered + 3)
        command(project, "interval", "30s")
        run.until(stands_still(project))
        before = epoch(project)
        command(project, "interval", "default")
        run.until(lambda: epoch(project) > before + 3)
        command(project, "freeze")
        # Also one that is frozen finishes what it has begun.
        assert "has stopped" in command(project, "stop")
        assert run.finish() == 0, run.errors
    again = project.run(".", command="stop")
    assert again.returncode == 1
    assert "does not run" in again.stderr


@pytest.fixture
def replicated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with owner(monkeypatch):
        project = Project.new(tmp_path, "chaos: allowed\n" + stream("500ms"))
        (tmp_path / "own.py").write_text("def tagged(tup):\n    return tup.id, tup.key\n")
        yield project


def told(project: Project) -> dict[str, Told]:
    if not (project.state / "coordinator.sqlite").exists():
        return {}
    with opened_roster(f"sqlite:{project.state / 'coordinator.sqlite'}") as roster:
        return roster.told()


def process(project: Project, replica: str) -> int:
    with opened_roster(f"sqlite:{project.state / 'coordinator.sqlite'}") as roster:
        return roster.members()[replica].process


def test_a_replica_that_is_frozen_is_kept_and_one_that_is_crashed_is_replaced(replicated: Project) -> None:
    with replicated.running() as run:
        run.until(lambda: all(epoch(replicated, name) > 2 for name in ("1", "2")))
        command(replicated, "freeze", "--replica", "1", "--operator", "counted")
        run.until(lambda: told(replicated)["1"].how == FROZEN)
        before, kept = epoch(replicated, "1"), process(replicated, "1")
        # Longer than one that is stuck would live.
        run.until(lambda: epoch(replicated, "2") > before + 30)
        # It has finished the epoch that it was in, and begun no other.
        assert epoch(replicated, "1") <= before + 1
        assert process(replicated, "1") == kept
        command(replicated, "unfreeze", "--replica", "1")
        run.until(lambda: epoch(replicated, "1") > before + 30)
        assert is_alive(kept)
        assert "was killed" in command(replicated, "crash", "--replica", "2")
        run.until(lambda: not is_alive(kept) or epoch(replicated, "2") > epoch(replicated, "1") - 3)
        assert is_alive(kept)
        command(replicated, "kill")
        run.finish()
    assert not is_alive(kept)
