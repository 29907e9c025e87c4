from __future__ import annotations

from pathlib import Path

from penstock.runtime.moved_state import move_state
from penstock.runtime.state_files import files_after, newest_committed, operator_metadata
from penstock.runtime.state_match import match_state

from .stored_state import shape, stored, write_batch, write_operator, write_whole


def laid_out(checkpoint: Path, operators: int, sources: int) -> Path:
    """What a first batch without input leaves, with changelogs off."""
    write_batch(checkpoint, 0)
    entry = checkpoint / "offsets" / "0"
    version, metadata, offset = entry.read_text().splitlines()
    entry.write_text("\n".join([version, metadata, *[offset] * sources]))
    (checkpoint / "metadata").write_text("{}")
    for number in range(operators):
        write_operator(checkpoint, number, f"kind {number}")
        for partition in ("0", "1"):
            write_whole(checkpoint / "state" / str(number) / partition, 1)
    return checkpoint


def test_state_goes_where_the_new_plan_looks_for_it(tmp_path: Path) -> None:
    saved = stored(tmp_path / "saved", batches=3, operators=("total", "first")).checkpoint
    (saved / "state/1/0/3.changelog").write_text("of first")
    match = match_state(dict(shape(["total", "first"])), dict(shape(["first", "new"])))
    target = tmp_path / "target"
    move_state(saved, 2, match, laid_out(tmp_path / "laid", 2, 3), target, target)
    assert newest_committed(target) == 2
    assert (target / "state/0/0/3.changelog").read_text() == "of first"
    assert operator_metadata(target, 0)["operatorInfo"]["operatorId"] == 0
    # The new operator has empty state of the version that its neighbours have.
    assert sorted(path.name for path in (target / "state/1/1").iterdir()) == ["3.zip"]
    assert operator_metadata(target, 1)["operatorInfo"] == {"operatorId": 1, "operatorName": "kind 1"}
    assert not (target / "state/2").exists()
    assert files_after(target, 2)


def test_every_place_that_reads_a_source_has_the_epoch(tmp_path: Path) -> None:
    saved = stored(tmp_path / "saved", batches=3, operators=("first",)).checkpoint
    match = match_state(dict(shape(["first"])), dict(shape(["first"])))
    target = tmp_path / "target"
    move_state(saved, 2, match, laid_out(tmp_path / "laid", 1, 3), target, target)
    for batch in ("1", "2"):
        before = (saved / "offsets" / batch).read_text().splitlines()
        assert (target / "offsets" / batch).read_text().splitlines() == [*before[:2], *[before[2]] * 3]
        assert len(before) == 3


def test_the_saved_state_itself_is_not_changed(tmp_path: Path) -> None:
    saved = stored(tmp_path / "saved", batches=2, operators=("total", "first")).checkpoint
    before = {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    match = match_state(dict(shape(["total", "first"])), dict(shape(["first", "total"])))
    move_state(saved, 1, match, laid_out(tmp_path / "laid", 2, 2), tmp_path / "target", tmp_path / "target")
    assert {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()} == before
    assert operator_metadata(tmp_path / "target", 0)["operatorInfo"]["operatorId"] == 0
