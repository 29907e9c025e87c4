from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.runtime.state_folder import StateFolder
from penstock.runtime.swap import is_unsettled, settle, swapped


class Killed(BaseException):
    """Stands for the end of the process: nothing after it is done, not even tidying up."""


def place(folder: Path) -> StateFolder:
    state = StateFolder(folder)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "old").write_text("old")
    (folder / "shape").write_text("old")
    (folder / "committed").write_text("stays")
    return state


def fill(prepared: Path) -> None:
    (prepared / "checkpoint").mkdir()
    (prepared / "checkpoint" / "new").write_text("new")
    (prepared / "shape").write_text("new")
    (prepared / "restored").write_text("new")


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


OLD = {"checkpoint/old": "old", "committed": "stays", "shape": "old"}
NEW = {"checkpoint/new": "new", "committed": "stays", "restored": "new", "shape": "new"}


def test_new_files_replace_the_old_ones_and_others_stay(tmp_path: Path) -> None:
    state = place(tmp_path)
    with swapped(state) as prepared:
        fill(prepared)
        assert content(tmp_path / "checkpoint") == {"old": "old"}
    assert content(tmp_path) == NEW
    assert not is_unsettled(state)


def test_when_filling_fails_nothing_has_happened(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), swapped(place(tmp_path)) as prepared:
        fill(prepared)
        raise ValueError("no")
    assert content(tmp_path) == OLD


def test_what_was_being_filled_when_the_process_died_is_thrown_away(tmp_path: Path) -> None:
    state = place(tmp_path)
    (tmp_path / "prepared").mkdir()
    fill(tmp_path / "prepared")
    assert not is_unsettled(state)
    assert settle(state) is False
    assert content(tmp_path) == OLD


def killed_at(monkeypatch: pytest.MonkeyPatch, method: str, call: int) -> None:
    """Die before the given call of one of Path's methods."""
    real: Callable[..., object] = getattr(Path, method)
    calls = iter(range(call + 1))

    def dying(*arguments: object) -> object:
        if next(calls, call) == call:
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(Path, method, dying)


@pytest.mark.parametrize("call", range(6))
def test_killed_between_any_two_renames_it_is_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    state = place(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        killed_at(patched, "rename", call)
        with pytest.raises(Killed), swapped(state) as prepared:
            fill(prepared)
    ready = is_unsettled(state)
    assert ready == (call > 0)
    assert settle(state) == ready
    assert content(tmp_path) == (NEW if ready else OLD)
    assert settle(state) is False


def test_six_renames_make_a_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above dies at each of them."""
    with monkeypatch.context() as patched:
        killed_at(patched, "rename", 6)
        with swapped(place(tmp_path)) as prepared:
            fill(prepared)
    assert content(tmp_path) == NEW
