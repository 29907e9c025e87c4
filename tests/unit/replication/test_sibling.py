"""A replica begins with a sibling's checkpoint, also when some of the siblings' disks fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.replication.sibling import WORTH_COPYING, begin_as, begin_from_sibling, go_on_without_replicas, to_be_like
from penstock.runtime.state_folder import Committed, StateFolder

from ..runtime.stored_state import stored, write_log


@pytest.fixture
def home(tmp_path: Path) -> StateFolder:
    """Of three replicas: the first has come to epoch 3, the second to epoch 5, and the third has nothing."""
    home = StateFolder(tmp_path / "state")
    stored(home.replica("1").path, 3)
    stored(home.replica("2").path, 5)
    home.replica("3").path.mkdir()
    write_log(home.coordinator, 5)
    return home


def begin(home: StateFolder) -> int | None:
    siblings = [home.replica("1"), home.replica("2"), home]
    with home.replica("3").held():
        return begin_from_sibling(home.replica("3"), siblings, "words", home.coordinator)


def make_unreadable(file: Path) -> None:
    """Also for root: reading it is an error of the system's."""
    file.unlink(missing_ok=True)
    file.mkdir()


def test_it_begins_with_the_one_that_is_furthest(home: StateFolder) -> None:
    assert begin(home) == 5
    assert home.replica("3").committed() == Committed(5)


def test_a_sibling_on_whose_disk_nothing_can_be_written_is_copied_all_the_same(home: StateFolder) -> None:
    # A disk may be full, or only be read after an error.
    home.replica("2").snapshots.write_text("no folder can be made here")
    assert begin(home) == 5
    assert home.replica("3").committed() == Committed(5)
    assert not list(home.replica("3").snapshots.iterdir())


@pytest.mark.parametrize("file", ["committed", "shape", "checkpoint/offsets/4", "checkpoint/state/0/1/5.changelog"])
def test_a_sibling_that_cannot_be_read_is_passed_over(home: StateFolder, file: str) -> None:
    make_unreadable(home.replica("2").path / file)
    assert begin(home) == 3
    assert home.replica("3").committed() == Committed(3)


@pytest.mark.parametrize("name", ["committed", "shape"])
def test_a_sibling_with_damaged_files_is_passed_over(home: StateFolder, name: str) -> None:
    (home.replica("2").path / name).write_text('{"epoch": 5, "en')
    assert begin(home) == 3


def test_one_that_finds_no_sibling_to_copy_replays(home: StateFolder) -> None:
    for name in ("1", "2"):
        make_unreadable(home.replica(name).shape)
    assert begin(home) is None
    assert home.replica("3").committed() == Committed()


def test_one_that_is_to_be_like_another_takes_its_checkpoint_also_where_it_has_come_further_itself(
    home: StateFolder,
) -> None:
    with home.replica("2").held():
        assert begin_as(home.replica("2"), home.replica("1"), "words", home.coordinator) == 3
    assert home.replica("2").committed() == Committed(3)


def test_all_are_to_be_like_the_first_that_has_state_and_is_not_far_behind(tmp_path: Path) -> None:
    states = {name: StateFolder(tmp_path / name) for name in ("10", "2", "1", "3")}
    for name, epoch in {"1": 0, "2": 40, "3": 38, "10": 41}.items():
        states[name].path.mkdir()
        states[name].record(Committed(epoch))
    assert to_be_like(states) == "2"
    states["10"].record(Committed(40 + WORTH_COPYING))
    assert to_be_like(states) == "10"
    states["3"].record(Committed(41 + WORTH_COPYING))
    assert to_be_like(states) == "3"
    states["3"].record(Committed(41 + WORTH_COPYING, ended=True))
    assert to_be_like(states) == "10"
    assert to_be_like({"1": states["1"]}) is None


@pytest.mark.parametrize("name", ["shape", "committed"])
def test_without_replicas_nothing_is_thrown_away_that_could_not_be_read(home: StateFolder, name: str) -> None:
    for replica in ("1", "2"):
        make_unreadable(home.replica(replica).path / name)
    with pytest.raises(PenstockError, match=r"can be copied to|cannot be read"):
        go_on_without_replicas(home, "words", home.coordinator)
    assert sorted(home.replicas()) == ["1", "2", "3"]
