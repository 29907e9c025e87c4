from __future__ import annotations

from pathlib import Path

import pytest

from penstock.epochs.record import EpochRecord
from penstock.runtime.checkpoint import mend, newest_epoch, rewind

from .offset_log import write_commit, write_offsets


def record(epoch: int) -> EpochRecord:
    return EpochRecord(epoch, 1000 + epoch, {"s": {"row": epoch}}, {"s": 1})


def checkpoint_of(folder: Path, batches: int) -> Path:
    """A checkpoint of so many micro-batches, all committed; the epoch of each is its number and ten."""
    for batch in range(batches):
        write_offsets(folder, batch, record(batch + 10))
        write_commit(folder, batch)
    return folder


def entries(checkpoint: Path, log: str) -> list[int]:
    return sorted(int(path.name) for path in (checkpoint / log).iterdir() if path.name.isdigit())


def mended(checkpoint: Path) -> list[str]:
    said: list[str] = []
    mend(checkpoint, said.append)
    return said


def test_a_sound_checkpoint_is_left_alone(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 12)
    write_offsets(checkpoint, 12, record(22))
    assert mended(checkpoint) == []
    assert entries(checkpoint, "offsets") == list(range(13))
    assert entries(checkpoint, "commits") == list(range(12))


def test_there_need_be_no_checkpoint(tmp_path: Path) -> None:
    assert mended(tmp_path / "none") == []
    assert newest_epoch(tmp_path / "none") is None


def test_the_newest_epoch_is_that_of_the_newest_entry_by_number(tmp_path: Path) -> None:
    # As text, 9 comes after 11.
    assert newest_epoch(checkpoint_of(tmp_path, 12)) == record(21)


def halved(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])


def emptied(entry: Path) -> None:
    entry.write_bytes(b"")


def zeroed(entry: Path) -> None:
    entry.write_bytes(b"\0" * entry.stat().st_size)


def without_its_last_line(entry: Path) -> None:
    entry.write_text("\n".join(entry.read_text().splitlines()[:-1]))


def no_text(entry: Path) -> None:
    entry.write_bytes(b"v1\n\xff\xfe{}")


DAMAGES = [halved, emptied, zeroed, without_its_last_line, no_text]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_offset_goes_and_its_commit_with_it(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    checkpoint = checkpoint_of(tmp_path, 3)
    damage(checkpoint / "offsets" / "2")
    said = mended(checkpoint)
    assert len(said) == 1
    assert str(checkpoint / "offsets" / "2") in said[0]
    assert entries(checkpoint, "offsets") == [0, 1]
    assert entries(checkpoint, "commits") == [0, 1]
    assert newest_epoch(checkpoint) == record(11)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_commit_goes_so_that_its_epoch_is_done_again(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    checkpoint = checkpoint_of(tmp_path, 3)
    damage(checkpoint / "commits" / "2")
    assert len(mended(checkpoint)) == 1
    assert entries(checkpoint, "offsets") == [0, 1, 2]
    assert entries(checkpoint, "commits") == [0, 1]


def test_several_damaged_entries_go_and_the_sound_ones_before_them_stay(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 5)
    for batch in (3, 4):
        halved(checkpoint / "offsets" / str(batch))
    assert len(mended(checkpoint)) == 2
    assert entries(checkpoint, "offsets") == entries(checkpoint, "commits") == [0, 1, 2]


def test_the_only_entry_may_be_damaged(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 1)
    emptied(checkpoint / "offsets" / "0")
    mended(checkpoint)
    assert newest_epoch(checkpoint) is None
    assert entries(checkpoint, "commits") == []


def test_drafts_and_checksums_are_no_entries(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 2)
    for name in (".2.crc", ".2.0f0f.tmp"):
        (checkpoint / "offsets" / name).write_bytes(b"\0")
    assert mended(checkpoint) == []
    assert newest_epoch(checkpoint) == record(11)


def with_state(checkpoint: Path, names: list[str]) -> Path:
    folder = checkpoint / "state" / "0" / "1"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("state")
    return folder


def test_rewinding_forgets_the_last_committed_batch_and_what_it_wrote(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 12)
    write_offsets(checkpoint, 12, record(22))
    state = with_state(checkpoint, ["9.zip", "11.changelog", "12.changelog", "12_ab-cd.zip", "13.delta", "000017.sst"])
    assert rewind(checkpoint) == 21
    assert entries(checkpoint, "commits") == list(range(11))
    assert entries(checkpoint, "offsets") == list(range(12))
    assert sorted(file.name for file in state.iterdir()) == ["000017.sst", "11.changelog", "9.zip"]


def test_rewinding_again_goes_back_further_until_there_is_nothing(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 2)
    assert [rewind(checkpoint), rewind(checkpoint), rewind(checkpoint)] == [11, 10, None]
    assert entries(checkpoint, "offsets") == [0]
