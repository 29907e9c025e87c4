"""Restores that need no Spark: those whose topology is as it was, and those that are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.errors import CoordinationError, DeliveryError, TopologyError
from penstock.runtime.backup import back_up
from penstock.runtime.compatibility import shape_of
from penstock.runtime.restore import Restoration, RestoreSettings, look_at, restore
from penstock.runtime.run import RunSettings
from penstock.runtime.state_files import files_after, newest_committed
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.topology.model import Count, Delivery, FrozenOptions, Sink, Source, StreamRef, Topology, Uniq

from .stored_state import stored, write_log

WORDS = Source("s", "file", FrozenOptions(file="s.csv"))
COUNTS = Count("counts", (StreamRef("s"),), keys=("word",))
OUT = Sink("out", StreamRef("counts"), "file", FrozenOptions(file="out.jsonl"))


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return Topology("words", sources=(WORDS,), operators=(COUNTS,), sinks=(OUT,), folder=tmp_path)


def place(topology: Topology) -> StateFolder:
    return StateFolder.of(topology)


@pytest.fixture
def kept(topology: Topology, tmp_path: Path) -> Path:
    """A backup after epoch 3."""
    state = stored(place(topology).path, of=shape_of(topology, 2))
    back_up(state, topology.name, state.coordinator, tmp_path / "kept")
    return tmp_path / "kept"


def looked(topology: Topology, source: Path, **more: Any) -> Restoration:
    return look_at(topology, RestoreSettings(source, **more), RunSettings())


def restored(topology: Topology, source: Path, **more: Any) -> StateFolder:
    found = looked(topology, source, **more)
    assert not found.needs_spark
    restore(found, RunSettings())
    return found.state


def written(folder: Path, epoch: int, topology: str = "words") -> None:
    """The file sink has come to this epoch."""
    (folder / ".out.jsonl.epochs").write_text(
        json.dumps({"topology": topology, "sink": "out", "epoch": epoch, "length": 0}))


def test_a_lost_state_folder_comes_back(topology: Topology, kept: Path, tmp_path: Path) -> None:
    before = place(topology).checkpoint / "state/0/1/2.changelog"
    content = before.read_text()
    shutil.rmtree(place(topology).path)
    written(tmp_path, 3)
    state = restored(topology, kept)
    assert (newest_committed(state.checkpoint), state.committed()) == (2, Committed(3))
    assert before.read_text() == content
    assert files_after(state.checkpoint, 2)
    assert json.loads(state.shape.read_text()) == shape_of(topology, 2)
    left = state.to_restore()
    assert (list(left.sinks), len(left.epochs), left.forget) == ([], 3, False)
    assert not (state.path / "prepared").exists()


def test_under_another_name_the_sinks_begin_there(topology: Topology, kept: Path, tmp_path: Path) -> None:
    written(tmp_path, 3)
    copy = replace(topology, name="copy")
    found = looked(copy, kept)
    assert found.notes == ["sink 'out' has no output here: it begins with epoch 4"]
    restore(found, RunSettings())
    assert list(place(copy).to_restore().sinks) == ["out"]
    assert place(topology).committed() == place(copy).committed() == Committed(3)


def test_an_interrupted_run_is_given_up_only_when_asked(topology: Topology, kept: Path, tmp_path: Path) -> None:
    written(tmp_path, 5)
    place(topology).record(Committed(5))
    with pytest.raises(CoordinationError, match=r"has come to epoch 5; with --replace it goes back to epoch 3"):
        looked(topology, kept)
    with pytest.raises(DeliveryError, match="sink 'out' has come to epoch 5, and the epoch log does not know"):
        looked(topology, kept, replace=True)
    write_log(place(topology).coordinator, 5)
    found = looked(topology, kept, replace=True)
    assert found.notes == ["sink 'out' has come to epoch 5: what is done again up to there is skipped"]
    restore(found, RunSettings())
    assert place(topology).committed() == Committed(3)


def test_at_most_once_begins_no_epoch_again(topology: Topology, kept: Path) -> None:
    write_log(place(topology).coordinator, 6)
    place(topology).record(Committed(5, begun=6))
    once = replace(topology, delivery=Delivery.AT_MOST_ONCE)
    assert restored(once, kept, replace=True).committed() == Committed(3, begun=6)
    anew = restored(once, kept, replace=True, fresh_sinks=True)
    assert anew.committed() == Committed(3)


def test_at_most_once_begins_no_epoch_again_that_another_replica_may_have_begun(
    topology: Topology, kept: Path
) -> None:
    write_log(place(topology).coordinator, 6)
    place(topology).record(Committed(4, begun=4))
    once = replace(topology, delivery=Delivery.AT_MOST_ONCE, replicas=2)
    assert restored(once, kept, replace=True).committed() == Committed(3, begun=6)


def test_fresh_sinks_leave_another_history_behind(topology: Topology, kept: Path, tmp_path: Path) -> None:
    state = place(topology)
    coordinator = open_coordinator(state.coordinator)
    EpochLog(coordinator).clear()
    coordinator.close()
    written(tmp_path, 9)
    with pytest.raises(DeliveryError, match="with --fresh-sinks their output is removed"):
        looked(topology, kept, replace=True)
    left = restored(topology, kept, replace=True, fresh_sinks=True).to_restore()
    assert (list(left.sinks), left.forget) == (["out"], True)


def test_a_running_topology_is_not_disturbed(topology: Topology, kept: Path) -> None:
    with place(topology).held(), pytest.raises(CoordinationError, match=r"is running .* --as NAME"):
        looked(topology, kept, replace=True)


def test_a_backup_of_a_finished_run_has_nothing_to_go_on_with(topology: Topology, kept: Path) -> None:
    text = json.dumps({**json.loads((kept / "committed").read_text()), "ended": True})
    (kept / "committed").write_text(text)
    manifest = json.loads((kept / "manifest").read_text())
    manifest["files"]["committed"] = {"size": len(text)}
    (kept / "manifest").write_text(json.dumps(manifest))
    with pytest.raises(CoordinationError, match="come to the end of its input at epoch 3"):
        looked(topology, kept, replace=True)


def test_what_does_not_fit_is_said_all_at_once(topology: Topology, kept: Path) -> None:
    changed = replace(topology, sources=(WORDS, replace(WORDS, name="t")), operators=(replace(COUNTS, keys=("page",)),))
    with pytest.raises(TopologyError) as caught:
        looked(changed, kept, replace=True)
    assert str(caught.value).splitlines()[1:] == [
        "  source 't' is new", "  operator 'counts': keys was word, now page; with another name it would begin empty"]


def test_what_needs_spark_is_known_before_it_is_started(topology: Topology, kept: Path, tmp_path: Path) -> None:
    written(tmp_path, 3)
    first = Uniq("first", (StreamRef("s"),), keys=("word",))
    more = replace(topology, operators=(COUNTS, first),
                   sinks=(replace(OUT, name="firsts", input=StreamRef("first")), OUT))
    found = looked(more, kept, replace=True)
    assert found.needs_spark
    assert "operator 'first' is new: it begins empty" in found.notes
    assert (found.match.taken, found.match.empty) == ({1: 0}, {0: "first"})
    wider = looked(topology, kept, replace=True, instances=4)
    assert wider.needs_rescale
    assert wider.notes == ["the state is divided over 4 instances instead of 2"]


def test_a_damaged_backup_changes_nothing(topology: Topology, kept: Path) -> None:
    (kept / "checkpoint/offsets/2").unlink()
    before = sorted(place(topology).path.rglob("*"))
    with pytest.raises(CoordinationError, match="checkpoint/offsets/2 is missing"):
        looked(topology, kept, replace=True)
    assert sorted(place(topology).path.rglob("*")) == before


def test_what_the_file_asks_for_since_the_backup_holds(topology: Topology, kept: Path) -> None:
    wider = replace(topology, operators=(replace(COUNTS, parallelism=5),))
    assert looked(topology, kept, replace=True).instances == 2
    assert looked(wider, kept, replace=True).instances == 5
    assert looked(wider, kept, replace=True, instances=3).instances == 3
