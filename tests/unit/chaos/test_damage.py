from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.chaos.damage import damage
from penstock.chaos.schedule import TAMPERING, Act


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    root = tmp_path / "checkpoint"
    for number in (2, 9, 10):
        for log in ("offsets", "commits"):
            (root / log).mkdir(parents=True, exist_ok=True)
            (root / log / str(number)).write_text(f"v1\n{log} {number}\n")
            (root / log / f".{number}.crc").write_text("sum")
    state = root / "state/0/1"
    state.mkdir(parents=True)
    for age, name in enumerate(["3.zip", "5.changelog", "4.changelog"]):
        (state / name).write_text("0123456789")
        os.utime(state / name, (100 - age, 100 - age))
    (state / "_metadata").write_text("newer than all")
    return root


def test_the_last_commit_is_deleted_and_can_be_put_back(checkpoint: Path, tmp_path: Path) -> None:
    done = damage(Act.DELETE_COMMIT, checkpoint, tmp_path / "copies")
    assert done is not None
    assert not (checkpoint / "commits/10").exists()
    assert (checkpoint / "commits/9").exists()
    done.put_back()
    assert (checkpoint / "commits/10").read_text() == "v1\ncommits 10\n"


def test_the_newest_offsets_are_cut_short(checkpoint: Path, tmp_path: Path) -> None:
    done = damage(Act.CORRUPT_OFFSETS, checkpoint, tmp_path / "copies")
    assert done is not None
    assert (checkpoint / "offsets/10").read_text() == "v1\noffs"
    assert (checkpoint / "offsets/9").read_text() == "v1\noffsets 9\n"
    done.put_back()
    assert (checkpoint / "offsets/10").read_text() == "v1\noffsets 10\n"


def test_the_newest_file_of_state_is_cut_short(checkpoint: Path, tmp_path: Path) -> None:
    assert damage(Act.CORRUPT_STATE, checkpoint, tmp_path / "copies") is not None
    sizes = {file.name: file.stat().st_size for file in (checkpoint / "state/0/1").iterdir()}
    assert sizes == {"3.zip": 5, "5.changelog": 10, "4.changelog": 10, "_metadata": 14}


def test_damage_done_twice_keeps_both_copies(checkpoint: Path, tmp_path: Path) -> None:
    first = damage(Act.CORRUPT_OFFSETS, checkpoint, tmp_path / "copies")
    second = damage(Act.CORRUPT_OFFSETS, checkpoint, tmp_path / "copies")
    assert first is not None and second is not None
    assert first.copy.read_text() != second.copy.read_text()


@pytest.mark.parametrize("act", TAMPERING)
def test_nothing_is_damaged_where_there_is_nothing(act: Act, tmp_path: Path) -> None:
    assert damage(act, tmp_path, tmp_path / "copies") is None
