from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import CoordinationError
from penstock.runtime.state_folder import Committed, StateFolder, UnusableState, is_alive

from ...waiting import wait_until


def test_what_was_committed_is_remembered(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert state.committed() == Committed()
    state.record(Committed(7, ended=True))
    assert StateFolder(tmp_path).committed() == Committed(7, ended=True)


def test_clearing_forgets_everything_but_the_logs(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.record(Committed(7))
    state.checkpoint.mkdir()
    state.logs.mkdir()
    (tmp_path / "coordinator.sqlite").write_text("")
    state.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_second_run_in_the_same_place_is_told_who_holds_it(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from penstock.runtime.state_folder import StateFolder\n"
        "with StateFolder(Path(sys.argv[1])).held(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CoordinationError, match=f"running already \\(process {other.pid} since"):
            StateFolder(tmp_path).held().__enter__()
        other.kill()
    with StateFolder(tmp_path).held():
        assert (tmp_path / "holder").read_text().startswith("process ")


def test_one_that_lives_is_waited_for_where_it_will_end(tmp_path: Path) -> None:
    """As a replica waits for a command that divides its state."""
    program = (
        "import sys, time; from pathlib import Path; from penstock.runtime.state_folder import StateFolder\n"
        "with StateFolder(Path(sys.argv[1])).held(): print('held', flush=True); time.sleep(0.5)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CoordinationError, match="running already"):
            StateFolder(tmp_path).held(patience=0.1).__enter__()
        with StateFolder(tmp_path).held(patience=60.0):
            assert f"process {os.getpid()} " in (tmp_path / "holder").read_text()


def test_a_place_that_cannot_hold_state_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableState, match="cannot be used for state"):
        StateFolder(tmp_path / "file" / "state").held().__enter__()


def test_a_process_that_has_ended_is_not_alive_even_if_nobody_has_asked() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    wait_until(lambda: not is_alive(ended.pid))
    assert is_alive(os.getpid())
    ended.wait()
    assert not is_alive(ended.pid)


def test_a_replica_whose_disk_fails_is_passed_over_unless_nothing_else_tells_how_far_all_are(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.replica("1").path.mkdir(parents=True)
    (state.replica("2").path / "committed").mkdir(parents=True)
    with pytest.raises(UnusableState, match=r"replicas/2/committed says how far .* cannot be read \(Is a directory\)"):
        state.furthest()
    state.replica("1").record(Committed(7))
    assert state.furthest() == state.replica("1")


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from penstock.runtime.state_folder import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n    with StateFolder(Path(sys.argv[1])).held(): pass\n"
        "except UnusableState as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path} cannot be used for state: File too large; try --state\n"


@pytest.mark.parametrize("text", ["", '{"epoch": 1', '{"apples": 1}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "committed").write_text(text)
    with pytest.raises(UnusableState, match=f"{tmp_path}/committed is damaged.*: put back a copy of {tmp_path}"):
        StateFolder(tmp_path).committed()
