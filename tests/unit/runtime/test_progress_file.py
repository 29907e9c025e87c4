"""How far a run is, for those who look often."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.runtime import progress_file
from penstock.runtime.progress_file import ProgressFile


def test_it_tells_what_was_written_last_and_since_when_the_epoch_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(progress_file.time, "time", lambda: now)
    file = ProgressFile(tmp_path / "progress.json")
    assert file.read() is None
    file.write({"epoch": 1, "lag": 5, "seconds": 1.0})
    now = 101.0
    file.write({"epoch": 1, "lag": 9, "seconds": 2.0})
    assert file.read() == {"epoch": 1, "lag": 9, "seconds": 2.0, "at": 101.0, "moved": 100.0}
    now = 102.0
    file.write({"epoch": 2, "lag": 9, "seconds": 3.0})
    found = ProgressFile(tmp_path / "progress.json").read()
    assert found is not None
    assert found["moved"] == 102.0


def test_nothing_is_written_where_nothing_is_new(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "progress.json")
    file.write({"epoch": 1, "seconds": 1.0})
    (tmp_path / "progress.json").unlink()
    file.write({"epoch": 1, "seconds": 2.0})
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_nothing_does_not_end_the_run(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "away/progress.json")
    file.write({"epoch": 1})
    (tmp_path / "away").mkdir()
    # The same again: it was not told yet.
    file.write({"epoch": 1})
    assert (file.read() or {})["epoch"] == 1
