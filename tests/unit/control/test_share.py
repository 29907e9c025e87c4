"""Several supervisors of one topology: what they share is made ready once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Topology
from penstock.connectors import agreed_file
from penstock.connectors.base import Place, Staged
from penstock.connectors.file_sink import FileSink
from penstock.control.share import Share, alone
from penstock.control.supervisor import Supervisor
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.errors import CoordinationError
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import Roster
from penstock.runtime.state_folder import Committed, StateFolder


def test_it_is_written_in_a_word() -> None:
    assert str(Share(("1", "3"), 2)) == "1,3@2"
    assert Share.parse("1,3@2", None) == Share(("1", "3"), 2)


def test_siblings_on_other_nodes_are_found(tmp_path: Path) -> None:
    for name, fresh in (("n1/t", 0), ("n2/t", 0), ("n2/other", 0), ("n3/t", 1)):
        (tmp_path / name / "state").mkdir(parents=True)
        (tmp_path / name / "begun").write_text(json.dumps({"fresh": fresh}))
    own = StateFolder(tmp_path / "n1/t/state")
    assert Share(("1",), nodes=tmp_path).elsewhere("t", own) == (StateFolder(tmp_path / "n2/t/state"),)
    assert Share(("1",)).elsewhere("t", own) == ()
    # One that was away when the topology was begun anew has the history before.
    assert Share(("1",), 1, tmp_path).elsewhere("t", own) == (StateFolder(tmp_path / "n3/t/state"),)


def test_one_at_a_time() -> None:
    coordinator, inside, most = MemoryCoordinator(), 0, 0

    def work() -> None:
        nonlocal inside, most
        with alone(coordinator):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


class Nodes:
    """Supervisors that are started and watch nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"sqlite:{folder / 'shared.sqlite'}"
        made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
        self.topology = made.count("word").sink("out", file=str(folder / "out.jsonl")).with_folder(folder)
        self.out = folder / "out.jsonl"

    def start(self, node: str, replica: str, history: int = 0, fresh: bool = False) -> None:
        place = ReplicaPlace(StateFolder(self.folder / node / "pair/state"))
        supervisor = Supervisor(self.topology, place, ["true"], self.address, share=Share((replica,), history))
        supervisor.start(fresh)
        assert [slot.name for slot in supervisor._slots] == [replica]
        supervisor._resources.close()

    def log(self) -> EpochLog:
        return EpochLog(open_coordinator(self.address))


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def test_the_second_one_clears_nothing_of_the_first(nodes: Nodes) -> None:
    nodes.start("n1", "1")
    nodes.log().propose(EpochRecord(1, 0, {"words": {}}, {"words": 3}))
    before = nodes.out.read_text() + "row\n"
    nodes.out.write_text(before)
    nodes.start("n2", "2")
    assert nodes.log().agreed() == [1]
    assert nodes.out.exists()


def test_a_new_history_is_begun_once(nodes: Nodes) -> None:
    nodes.start("n1", "1")
    nodes.log().propose(EpochRecord(1, 0, {"words": {}}, {"words": 3}))
    nodes.start("n1", "1", history=1, fresh=True)
    assert nodes.log().agreed() == []
    nodes.log().propose(EpochRecord(1, 0, {"words": {}}, {"words": 5}))
    nodes.start("n2", "2", history=1, fresh=True)
    assert nodes.log().agreed() == [1]


def test_state_without_a_log_empties_no_sink(nodes: Nodes) -> None:
    nodes.start("n1", "1")
    nodes.out.write_text("row\n")
    StateFolder(nodes.folder / "n1/pair/state").replica("1").path.mkdir(parents=True)
    StateFolder(nodes.folder / "n1/pair/state").replica("1").record(Committed(500))
    with pytest.raises(CoordinationError, match="state of another history"):
        nodes.start("n1", "1")
    assert nodes.out.read_text() == "row\n"


def test_all_replicas_count_for_what_the_log_keeps(nodes: Nodes) -> None:
    nodes.start("n1", "1")
    nodes.start("n2", "2")
    nodes.log().note_progress("1", 7)
    nodes.start("n2", "2")
    assert nodes.log().progress()["1"] == 7
    assert Roster(open_coordinator(nodes.address)).version() is not None


def committing(nodes: Nodes, replica: str) -> FileSink:
    place = Place("pair", "out", nodes.folder, replica)
    return FileSink.configure(place, {"file": str(nodes.out)}).shared()


def staged(sink: FileSink, row: str) -> Staged:
    return sink.stage(iter([pa.RecordBatch.from_pydict({"line": [f"{row}\n"]})]))


def test_a_node_that_starts_takes_nothing_from_a_replica_that_is_frozen_on_another(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is signed out, and nobody sees it: it stands between its write and the note that the epoch is done."""
    nodes.start("n1", "1")
    nodes.log().propose(EpochRecord(1, 0, {"words": {}}, {"words": 3}))
    sink = committing(nodes, "1")
    sink.commit(1, [staged(sink, "first")])
    later = staged(sink, "third")
    gone = staged(committing(nodes, "2"), "never committed")
    write = agreed_file._write_at

    def frozen_after_it(target: Path, start: int, source: int) -> int:
        end = write(target, start, source)
        nodes.start("n2", "2")
        return end

    with monkeypatch.context() as patch:
        patch.setattr(agreed_file, "_write_at", frozen_after_it)
        sink.commit(2, [staged(sink, "second")])
    assert not Path(gone.detail["part"]).exists()
    sink.commit(3, [later])
    assert nodes.out.read_text() == "first\nsecond\nthird\n"
