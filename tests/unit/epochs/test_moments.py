from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.epochs.moments import (
    VARIABLE,
    Deed,
    Moment,
    Victim,
    processes_of,
    reach,
    read_marker,
    read_plan,
    victims,
    write_plan,
)

PROGRAM = """\
import sys
from penstock.epochs.moments import Moment, reach
for epoch in range(1, 6):
    for moment in Moment:
        reach(moment, epoch)
        print(epoch, moment, flush=True)
sys.stdin.read()
"""

FORKING = """\
import os, sys, time
worker = os.fork()
if worker == 0:
    sys.stdin.readline()
    from penstock.epochs.moments import Moment, reach
    reach(Moment.DURING_TASK, 1)
    time.sleep(60)
print(worker, flush=True)
print(os.waitpid(worker, 0)[1], flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program as `penstock chaos` starts a run: as the leader of a session, with a plan."""
    started: list[subprocess.Popen[str]] = []

    def run(program: str, *deeds: Deed) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program], env={**os.environ, VARIABLE: write_plan(deeds)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        for one in processes_of(process.pid):
            os.kill(one.pid, signal.SIGKILL)
        process.communicate()


def said(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=30)
    return out.splitlines()


def test_without_a_plan_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reach(Moment.BETWEEN_SINKS, 1)


def test_a_plan_is_read_as_it_was_written() -> None:
    deeds = (Deed(Moment.AFTER_OFFSETS, 3, Victim.JVM, "a"), Deed(Moment.DURING_TASK, 5, Victim.WORKER, "b"))
    assert read_plan(write_plan(deeds)) == deeds


def test_the_driver_dies_at_its_moment_and_not_before(start: Start, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    process = start(PROGRAM, Deed(Moment.BETWEEN_SINKS, 3, Victim.DRIVER, str(marker)))
    assert said(process)[-1] == "3 during-task"
    assert process.returncode == -signal.SIGKILL
    done = read_marker(marker)
    assert done is not None
    assert (done.epoch, done.pid) == (3, process.pid)


def test_the_next_start_with_the_same_plan_survives(start: Start, tmp_path: Path) -> None:
    deed = Deed(Moment.AFTER_OFFSETS, 2, Victim.DRIVER, str(tmp_path / "marker"))
    assert said(start(PROGRAM, deed))[-1] == "1 before-commit-log"
    again = start(PROGRAM, deed)
    assert said(again)[-1] == "5 before-commit-log"
    assert again.returncode == 0


def test_nothing_is_done_before_it_is_armed(start: Start, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    deed = Deed(Moment.AFTER_OFFSETS, 2, Victim.DRIVER, str(tmp_path / "marker"), str(armed))
    assert said(start(PROGRAM, deed))[-1] == "5 before-commit-log"
    armed.touch()
    assert said(start(PROGRAM, deed))[-1] == "1 before-commit-log"


def test_a_moment_missed_in_its_epoch_is_taken_in_a_later_one(start: Start, tmp_path: Path) -> None:
    process = start(PROGRAM.replace("range(1, 6)", "range(4, 6)"),
                    Deed(Moment.DURING_TASK, 2, Victim.DRIVER, str(tmp_path / "marker")))  # fmt: skip
    assert said(process) == ["4 after-offsets"]


def test_a_victim_that_is_not_there_leaves_the_deed_for_later(start: Start, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    process = start(PROGRAM, Deed(Moment.DURING_TASK, 1, Victim.JVM, str(marker)))
    assert said(process)[-1] == "5 before-commit-log"
    assert read_marker(marker) is None


def test_a_worker_can_kill_itself_and_leave_the_driver_alive(start: Start, tmp_path: Path) -> None:
    process = start(FORKING, Deed(Moment.DURING_TASK, 1, Victim.WORKER, str(tmp_path / "marker")))
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    assert victims(Victim.WORKER, process.pid) == [worker]
    assert said_after_a_line(process) == [str(int(signal.SIGKILL))]
    assert process.returncode == 0


def test_a_worker_can_kill_the_driver(start: Start, tmp_path: Path) -> None:
    process = start(FORKING, Deed(Moment.DURING_TASK, 1, Victim.DRIVER, str(tmp_path / "marker")))
    assert process.stdin is not None and process.stdout is not None
    worker = int(process.stdout.readline())
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(30) == -signal.SIGKILL
    assert [one.pid for one in processes_of(process.pid)] == [worker]


def test_the_dead_that_nobody_has_buried_are_not_victims(start: Start) -> None:
    process = start("import sys; sys.stdin.read()")
    assert victims(Victim.DRIVER, process.pid) == [process.pid]
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert victims(Victim.DRIVER, process.pid) == []


def said_after_a_line(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate("\n", timeout=30)
    return out.splitlines()
