from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.chaos.life import DIE_WITH_PARENT, Life, clear_error, wait_until
from penstock.epochs.moments import Victim, processes_of
from penstock.runtime.state_folder import StateFolder

FAKE = Path(__file__).with_name("fake_run.py")
PATIENCE = 30.0


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """A run without end, at work."""
    folders = ("--state", str(tmp_path / "state"), "--scratch", str(tmp_path / "out"))
    started = Life([sys.executable, str(FAKE), "1000000", *folders], {}, tmp_path / "logs/run")
    try:
        assert wait_until(lambda: committed(tmp_path) > 0, PATIENCE)
        yield started
    finally:
        started.kill_all()


def committed(folder: Path) -> int:
    return StateFolder(folder / "state").committed().epoch


def dies(life: Life) -> Callable[[], bool]:
    return lambda: life.code() is not None


def test_a_run_at_work_has_a_driver_a_jvm_and_a_worker(life: Life) -> None:
    assert life.at_work()
    assert life.survivors() == 3


@pytest.mark.parametrize("victim", [Victim.JVM, Victim.WORKER])
def test_a_run_that_loses_a_process_ends_with_its_own_error(life: Life, victim: Victim) -> None:
    assert life.kill(victim, 0.99)
    assert wait_until(dies(life), PATIENCE)
    assert life.code() == 1
    assert clear_error(life.said()) == "a process of Spark's is gone"


def test_a_killed_driver_leaves_the_others_to_notice(life: Life) -> None:
    assert life.kill(Victim.DRIVER)
    assert wait_until(dies(life), PATIENCE)
    assert life.code() == -signal.SIGKILL
    assert wait_until(lambda: life.survivors() == 0, PATIENCE)
    assert not life.kill(Victim.DRIVER)


def test_killing_all_leaves_nothing(life: Life) -> None:
    life.kill_all()
    assert life.survivors() == 0
    assert life.code() == -signal.SIGKILL


def test_a_frozen_run_stands_still_and_goes_on(life: Life, tmp_path: Path) -> None:
    began = time.monotonic()
    life.freeze_for(0.3)
    after = committed(tmp_path)
    assert time.monotonic() - began >= 0.3
    assert wait_until(lambda: committed(tmp_path) > after, PATIENCE)


def test_a_terminated_run_ends_by_itself(life: Life) -> None:
    assert life.terminate()
    assert wait_until(dies(life), PATIENCE)
    assert life.code() == 0
    assert not life.terminate()


def test_an_error_is_clear_when_it_is_told_in_words() -> None:
    assert clear_error("starting …\nerror: no Java was found\n  see the docs\n") == "no Java was found"
    assert clear_error("Traceback (most recent call last):\n  …\nerror: x") is None
    assert clear_error("error: epoch 1 failed: An error occurred while calling o295.collectAsList.") is None
    assert clear_error("") is None


def test_a_run_does_not_outlive_the_command_that_started_it(tmp_path: Path) -> None:
    program = f"{DIE_WITH_PARENT}import time; print('up', flush=True); time.sleep(600)"
    parent = (
        "import sys, time; from pathlib import Path; from penstock.chaos.life import Life, wait_until\n"
        "life = Life([sys.executable, '-c', sys.argv[1]], {}, Path(sys.argv[2]))\n"
        "wait_until(lambda: 'up' in Path(sys.argv[2]).with_suffix('.out').read_text(), 30)\n"
        "print(life.session, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", parent, program, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        session = int(started.stdout.readline())
        assert len(processes_of(session)) == 1
        started.kill()
    assert wait_until(lambda: processes_of(session) == [], PATIENCE)
