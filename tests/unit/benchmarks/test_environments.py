from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from side_by_side.contestants import Contestant
from side_by_side.environments import NotInstalled, python_of

PEER = Contestant("peer", "Peer 1.0", ("peer==1.0", "other"))


class Calls:
    """Stands in for `subprocess.run`, and fails where it is told to."""

    def __init__(self, failing: str = "", said: str = "") -> None:
        self.made: list[list[str]] = []
        self._failing, self._said = failing, said

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.made.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        failed = bool(self._failing) and self._failing in command
        return subprocess.CompletedProcess(command, int(failed), "", self._said if failed else "")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls, told = Calls(), list[str]()
    monkeypatch.setattr(subprocess, "run", calls)

    first, second = (python_of(PEER, told.append) for _ in range(2))

    assert first == second == tmp_path / "penstock" / "peers" / "peer" / "bin" / "python"
    assert [command[-2:] for command in calls.made] == [["venv", str(first.parents[1])], ["peer==1.0", "other"]]
    assert len(told) == 1, "whoever waits is told so"


def test_one_for_another_version_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    monkeypatch.setattr(subprocess, "run", calls)

    python_of(PEER, lambda _: None)
    python_of(Contestant("peer", "Peer 2.0", ("peer==2.0",)), lambda _: None)

    assert [command[-1] for command in calls.made if "pip" in command] == ["other", "peer==2.0"]


def test_what_pip_says_is_the_reason_and_the_next_run_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls("pip", "looking\nERROR: No matching distribution found for peer==1.0\nbye")
    monkeypatch.setattr(subprocess, "run", calls)

    for _ in range(2):
        with pytest.raises(NotInstalled, match=r"^ERROR: No matching distribution found for peer==1.0$"):
            python_of(PEER, lambda _: None)

    assert len(calls.made) == 4


def test_whoever_needs_nothing_runs_where_this_runs() -> None:
    assert python_of(Contestant("penstock", "Penstock"), lambda _: None) == Path(sys.executable)
