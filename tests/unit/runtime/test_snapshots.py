from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import CoordinationError, PenstockError, TopologyError
from penstock.runtime import snapshots
from penstock.runtime.backup import back_up
from penstock.runtime.manifest import MANIFEST, Manifest, check_whole, copy_snapshot, read_manifest
from penstock.runtime.snapshots import delete_snapshot, list_snapshots, take_snapshot
from penstock.runtime.state_folder import Committed, StateFolder

from .stored_state import stored, write_batch, write_changes


def take(state: StateFolder, name: str | None = None) -> Manifest:
    return take_snapshot(state, "words", state.coordinator, name)


def test_a_snapshot_is_of_the_newest_epoch_that_is_done(tmp_path: Path) -> None:
    state = stored(tmp_path, batches=3)
    write_batch(state.checkpoint, 3, committed=False)
    # The sinks are ahead of Spark's own log for a moment.
    state.record(Committed(4, lost_tuples=2))
    taken = take(state)
    assert (taken.name, taken.topology, taken.epoch, taken.batch) == ("epoch-3", "words", 3, 2)
    assert (taken.instances, taken.state_ids) == (2, ("counts",))
    folder = state.snapshots / "epoch-3"
    assert json.loads((folder / "committed").read_text()) == Committed(3, lost_tuples=2).__dict__
    assert [json.loads(line)[0][-1] for line in (folder / "epochs").read_text().splitlines()] == ["1", "2", "3"]
    assert read_manifest(folder) == taken
    check_whole(folder, taken)


def test_a_snapshot_outlives_what_the_run_deletes(tmp_path: Path) -> None:
    state = stored(tmp_path)
    taken = take(state, "before")
    state.clear()
    check_whole(state.snapshots / "before", taken)
    assert list_snapshots(state) == [taken]


def test_without_a_committed_epoch_there_is_nothing_to_take(tmp_path: Path) -> None:
    with pytest.raises(CoordinationError, match="topology 'words' has committed no epoch yet"):
        take(StateFolder(tmp_path))
    assert list(tmp_path.glob("snapshots/*")) == []


@pytest.mark.parametrize("name", ["", "../out", ".hidden", "a/b", "-x", "ü", "a" * 101])
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TopologyError, match="cannot be the name of a checkpoint"):
        take(stored(tmp_path), name)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    state = stored(tmp_path)
    take(state, "one")
    take(state)
    for name in ("one", None):
        with pytest.raises(CoordinationError, match="already; choose another name"):
            take(state, name)
    assert {each.name for each in list_snapshots(state)} == {"one", "epoch-3"}


def test_a_snapshot_that_is_deleted_is_gone(tmp_path: Path) -> None:
    state = stored(tmp_path)
    take(state, "one")
    with pytest.raises(CoordinationError, match=r"no checkpoint 'two' .* there are: one"):
        delete_snapshot(state, "two")
    delete_snapshot(state, "one")
    assert list_snapshots(state) == []


def test_when_retention_is_faster_a_newer_epoch_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = stored(tmp_path, batches=3)
    real = snapshots.link_checkpoint
    asked: list[int] = []

    def overtaken(checkpoint: Path, batch: int, target: Path, read_at: Path) -> list[Path]:
        asked.append(batch)
        if len(asked) == 1:
            write_batch(checkpoint, 3)
            for partition in ("0", "1"):
                write_changes(checkpoint / "state/0" / partition, 4)
            target.mkdir(parents=True)
            (target / "half").write_text("")
            raise FileNotFoundError("taken away")
        return real(checkpoint, batch, target, read_at)

    monkeypatch.setattr(snapshots, "link_checkpoint", overtaken)
    taken = take(state)
    assert (asked, taken.epoch) == ([2, 3], 4)
    assert not [name for name in taken.files if "half" in name]


def test_state_that_is_not_whole_is_told_after_some_patience(tmp_path: Path) -> None:
    state = stored(tmp_path)
    (state.checkpoint / "state/0/1/2.changelog").unlink()
    with pytest.raises(CoordinationError, match=r"is not whole: .*2.changelog"):
        take(state)


def test_state_that_is_being_replaced_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = stored(tmp_path / "state")
    ready, elsewhere = state.path / "ready", tmp_path / "elsewhere"
    # In the middle of a swap: the old checkpoint is gone, and the new one is not in its place yet.
    state.checkpoint.rename(elsewhere)
    ready.mkdir()

    def others_go_on(_: float) -> None:
        elsewhere.rename(state.checkpoint)
        ready.rmdir()

    monkeypatch.setattr("penstock.runtime.snapshots.time.sleep", others_go_on)
    assert take(state).epoch == 3


def test_what_a_killed_command_left_is_removed(tmp_path: Path) -> None:
    state = stored(tmp_path)
    (state.snapshots / ".4194999-dead").mkdir(parents=True)
    take(state, "one")
    assert [path.name for path in state.snapshots.iterdir()] == ["one"]


def test_a_backup_is_complete_in_itself_and_has_digests(tmp_path: Path) -> None:
    state = stored(tmp_path / "state")
    told: list[tuple[int, int]] = []
    copied = back_up(state, "words", state.coordinator, tmp_path / "backup", look=lambda *far: told.append(far))
    assert told[-1] == (copied.size, copied.size)
    assert all(file.sha256 for file in copied.files.values())
    store = Path("checkpoint/state/0/0/1.changelog")
    assert not (tmp_path / "backup" / store).samefile(state.path / store)
    assert read_manifest(tmp_path / "backup") == copied
    check_whole(tmp_path / "backup", copied)
    assert list(state.snapshots.iterdir()) == []


def test_a_backup_of_a_named_checkpoint_is_of_its_epoch(tmp_path: Path) -> None:
    state = stored(tmp_path / "state", batches=2)
    take(state, "then")
    write_batch(state.checkpoint, 2)
    assert back_up(state, "words", state.coordinator, tmp_path / "backup", "then").epoch == 2
    with pytest.raises(CoordinationError, match="no checkpoint 'now'"):
        back_up(state, "words", state.coordinator, tmp_path / "other", "now")


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    state = stored(tmp_path / "state")
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "mine").write_text("")
    with pytest.raises(CoordinationError, match="backup is not empty"):
        back_up(state, "words", state.coordinator, tmp_path / "backup")


def test_a_copy_that_was_interrupted_is_no_backup(tmp_path: Path) -> None:
    state = stored(tmp_path / "state")
    back_up(state, "words", state.coordinator, tmp_path / "backup")
    (tmp_path / "backup" / MANIFEST).unlink()
    with pytest.raises(CoordinationError, match=r"'manifest' is missing, .* copied only in part"):
        read_manifest(tmp_path / "backup")
    with pytest.raises(CoordinationError, match="not made by `penstock backup`"):
        read_manifest(tmp_path)
    with pytest.raises(CoordinationError, match="there is no folder"):
        read_manifest(tmp_path / "none")
    (tmp_path / "backup" / MANIFEST).write_text('{"half')
    with pytest.raises(CoordinationError, match="manifest cannot be read"):
        read_manifest(tmp_path / "backup")


def damaged(folder: Path, manifest: Manifest) -> str:
    with pytest.raises(PenstockError) as caught:
        check_whole(folder, manifest)
    return str(caught.value)


def test_a_half_copied_backup_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    state = stored(tmp_path / "state")
    folder = tmp_path / "backup"
    copied = back_up(state, "words", state.coordinator, folder)
    changes = folder / "checkpoint/state/0/0"
    (changes / "1.changelog").unlink()
    (changes / "2.changelog").write_text("cut")
    (changes / "3.changelog").write_text("x" * (changes / "3.changelog").stat().st_size)
    said = damaged(folder, copied)
    assert "checkpoint/state/0/0/1.changelog is missing" in said
    assert "checkpoint/state/0/0/2.changelog has 3 bytes instead of 17" in said
    assert "checkpoint/state/0/0/3.changelog is not what was copied" in said
    assert said.splitlines()[0].endswith("is not whole; copy the backup again:")


def test_of_many_missing_files_the_first_are_named(tmp_path: Path) -> None:
    state = stored(tmp_path / "state", batches=9)
    copied = copy_snapshot(state.snapshots / take(state).name, tmp_path / "backup")
    for file in (tmp_path / "backup").rglob("*.changelog"):
        file.unlink()
    assert damaged(tmp_path / "backup", copied).endswith("and 8 more")
