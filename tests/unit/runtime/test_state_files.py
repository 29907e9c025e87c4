from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import CoordinationError
from penstock.runtime.state_files import (
    can_go_back,
    files_after,
    keep_newest,
    link_checkpoint,
    newest_committed,
    operator_metadata,
    relocate,
    size_of_state,
    state_partitions,
)

from .stored_state import stored, write_batch, write_changes, write_operator, write_whole


def names(files: list[Path], under: str) -> list[str]:
    return sorted(str(file.relative_to(under)) for file in files if file.is_relative_to(under))


def test_the_newest_batch_is_the_newest_that_is_done(tmp_path: Path) -> None:
    assert newest_committed(tmp_path) is None
    for batch in range(12):
        write_batch(tmp_path, batch)
    write_batch(tmp_path, 12, committed=False)
    assert newest_committed(tmp_path) == 11


def test_a_batch_needs_its_entries_and_those_of_the_batch_before(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=5).checkpoint
    files = files_after(checkpoint, 3)
    assert names(files, "offsets") == names(files, "commits") == ["2", "3"]
    assert Path("metadata") in files


def test_state_that_was_never_written_whole_is_all_of_its_changes(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=5).checkpoint
    for partition in ("0", "1"):
        found = names(files_after(checkpoint, 3), f"state/0/{partition}")
        assert [name for name in found if name.endswith("changelog")] == [f"{n}.changelog" for n in (1, 2, 3, 4)]
    assert names(files_after(checkpoint, 3), "state/0/_metadata") == ["metadata"]
    assert names(files_after(checkpoint, 3), "state/0/0/_metadata") == ["schema"]


def test_state_is_its_newest_whole_version_with_the_tables_it_names_and_the_changes_since(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=5, partitions=1).checkpoint
    store = checkpoint / "state/0/0"
    write_whole(store, 2, ["old"])
    write_whole(store, 3, ["a", "b"])
    write_whole(store, 5, ["later"])
    (store / "1.changelog").unlink()
    kept = [name for name in names(files_after(checkpoint, 3), "state/0/0") if "schema" not in name]
    assert kept == ["3.zip", "4.changelog", "SSTs/a-shared.sst", "SSTs/b-shared.sst"]


def test_state_that_retention_took_away_is_noticed(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=5).checkpoint
    (checkpoint / "state/0/1/2.changelog").unlink()
    with pytest.raises(FileNotFoundError, match=r"2.changelog"):
        files_after(checkpoint, 3)


def test_a_partition_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=2, partitions=2).checkpoint
    write_batch(checkpoint, 1, partitions=3)
    with pytest.raises(FileNotFoundError, match="state/0/2"):
        files_after(checkpoint, 1)


def test_partitions_left_from_a_wider_division_are_not_taken(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=2, partitions=3).checkpoint
    write_batch(checkpoint, 1, partitions=2)
    assert state_partitions(checkpoint, 1) == 2
    assert names(files_after(checkpoint, 1), "state/0/2") == []


def test_an_operator_with_several_stores_keeps_them_all(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=2, operators=(), partitions=1).checkpoint
    write_operator(checkpoint, 0, "symmetricHashJoin")
    for store in ("left-keyToNumValues", "right-keyToNumValues"):
        for version in (1, 2):
            write_changes(checkpoint / "state/0/0" / store, version)
    found = [name for name in names(files_after(checkpoint, 1), "state/0/0") if "schema" not in name]
    assert found == [f"{side}-keyToNumValues/{n}.changelog" for side in ("left", "right") for n in (1, 2)]


def test_a_form_of_state_that_is_not_known_is_refused(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=2).checkpoint
    (checkpoint / "state/0/0/2_someid.changelog").write_text("")
    with pytest.raises(CoordinationError, match=r"2_someid.changelog is not in a form of state"):
        files_after(checkpoint, 1)


def test_a_linked_checkpoint_keeps_what_spark_deletes(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path / "state", batches=3).checkpoint
    copy = tmp_path / "copy"
    files = link_checkpoint(checkpoint, 1, copy, copy)
    store = Path("state/0/0")
    assert (copy / store / "2.changelog").samefile(checkpoint / store / "2.changelog")
    (checkpoint / store / "2.changelog").unlink()
    assert (copy / store / "2.changelog").read_text() == "changes of 2 in 0"
    assert sorted(files) == sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    assert newest_committed(copy) == 1


def test_only_what_the_newest_batch_needs_is_kept(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=4, partitions=2).checkpoint
    write_whole(checkpoint / "state/0/0", 4)
    keep_newest(checkpoint, checkpoint)
    assert [path.name for path in sorted((checkpoint / "state/0/0").iterdir())] == ["4.zip", "_metadata"]
    assert sorted(path.name for path in (checkpoint / "offsets").iterdir()) == ["2", "3"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_whole_paths_in_sparks_notes_lead_to_the_new_place(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path / "old", batches=2).checkpoint
    notes = {"operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
             "stateStoreInfo": [{"storeName": "default", "stateSchemaFilePaths": [
                 f"file:{checkpoint}/state/0/_stateSchema/default/0_id"]}]}
    file = checkpoint / "state/0/_metadata/v2/0"
    file.parent.mkdir()
    file.write_text(f"v2\n{json.dumps(notes)}")
    later = file.with_name("9")
    later.write_text("of a batch that is not taken")
    copy = tmp_path / "state" / "copy"
    link_checkpoint(checkpoint, 1, copy, copy)
    (store,) = operator_metadata(copy, 0)["stateStoreInfo"]
    assert store["stateSchemaFilePaths"] == [f"file:{copy}/state/0/_stateSchema/default/0_id"]
    assert "old" in file.read_text()
    assert not (copy / "state/0/_metadata/v2/9").exists()
    relocate(copy, tmp_path / "final")
    (store,) = operator_metadata(copy, 0)["stateStoreInfo"]
    assert store["stateSchemaFilePaths"] == [f"file:{tmp_path}/final/state/0/_stateSchema/default/0_id"]


def test_the_size_of_state_is_that_of_the_files_that_hold_it(tmp_path: Path) -> None:
    checkpoint = stored(tmp_path, batches=3, partitions=2).checkpoint
    assert size_of_state(checkpoint, 0, 1) == 4 * len("changes of 1 in 0")


def test_there_is_a_way_back_only_while_the_state_before_is_there(tmp_path: Path) -> None:
    assert not can_go_back(tmp_path)
    assert can_go_back(stored(tmp_path / "first", batches=1).checkpoint)
    checkpoint = stored(tmp_path / "more", batches=4).checkpoint
    assert can_go_back(checkpoint)
    for partition in ("0", "1"):
        write_whole(checkpoint / "state/0" / partition, 4)
    keep_newest(checkpoint, checkpoint)
    assert not can_go_back(checkpoint)
