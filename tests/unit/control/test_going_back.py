"""Replicas on several nodes go back to a checkpoint: one node restores it, once, and the others begin with its."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.cli.replicas import _go_back
from penstock.control import making_ready
from penstock.control.share import Share
from penstock.control.supervisor import Supervisor
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.errors import CoordinationError, DeliveryError
from penstock.replication.history import history_of, note_history
from penstock.replication.replica import ReplicaPlace
from penstock.replication.sibling import begin_from_sibling
from penstock.runtime.compatibility import shape_of
from penstock.runtime.restore import RestoreSettings
from penstock.runtime.run import RunSettings
from penstock.runtime.snapshots import take_snapshot
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.topology.model import Count, FrozenOptions, Sink, Source, StreamRef, Topology

from ..runtime.stored_state import stored, write_log

REPLICAS = {"n1": "1", "n2": "2"}


class Cluster:
    """Two nodes whose replicas have come to epoch 5, and a checkpoint after epoch 3 on the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"sqlite:{folder / 'shared.sqlite'}"
        self.topology = Topology(
            "words", replicas=2, cells=("any",), folder=folder,
            sources=(Source("s", "file", FrozenOptions(file="s.csv")),),
            operators=(Count("counts", (StreamRef("s"),), keys=("word",)),),
            sinks=(Sink("out", StreamRef("counts"), "file", FrozenOptions(file="out.jsonl")),))  # fmt: skip
        self.out = folder / "out.jsonl"
        for node in REPLICAS:
            self.start(node)
        for node in REPLICAS:
            stored(self.replica(node).path, of=shape_of(self.topology, 2))
        write_log(self.address, 5)
        self.kept = self.home("n1").snapshots / "kept"
        take_snapshot(self.home("n1"), "words", self.address, "kept")
        for node in REPLICAS:
            stored(self.replica(node).path, 5, of=shape_of(self.topology, 2))
        self.write_output(5)

    def home(self, node: str) -> StateFolder:
        return StateFolder(self.folder / "nodes" / node / "words/state")

    def replica(self, node: str) -> StateFolder:
        return self.home(node).replica(REPLICAS[node])

    def write_output(self, epoch: int) -> None:
        self.out.write_text("row\n")
        (self.folder / ".out.jsonl.epochs").write_text(
            json.dumps({"topology": "words", "sink": "out", "epoch": epoch, "length": 4}))

    def share(self, node: str, history: int) -> Share:
        return Share((REPLICAS[node],), history, self.folder / "nodes")

    def start(self, node: str, history: int = 0, back: RestoreSettings | None = None, fresh: bool = False) -> None:
        """Make ready what a node begins with; its replicas are not started."""
        run = RunSettings(state=self.home(node).path, coordinator=self.address)
        go_back = None if back is None else functools.partial(_go_back, self.topology, back, run, lambda _: None)
        made = Supervisor(self.topology, ReplicaPlace(self.home(node)), ["true"], self.address,
                          share=self.share(node, history), go_back=go_back)  # fmt: skip
        made.start(fresh)
        made._resources.close()

    def begun_by_sibling(self, node: str, history: int = 1) -> int | None:
        """The epoch with which a replica of the node begins that has nothing."""
        place = ReplicaPlace(self.home(node), self.share(node, history).elsewhere("words", self.home(node)))
        own = self.replica(node)
        with own.held():
            siblings = [*place.siblings_of(REPLICAS[node]), place.home]
            return begin_from_sibling(own, siblings, "words", self.address)

    @contextmanager
    def opened(self) -> Iterator[Coordinator]:
        coordinator = open_coordinator(self.address)
        try:
            yield coordinator
        finally:
            coordinator.close()

    @property
    def history(self) -> int | None:
        with self.opened() as coordinator:
            return history_of(coordinator)

    def agreed(self) -> list[int]:
        with self.opened() as coordinator:
            return EpochLog(coordinator).agreed()

    def back(self, fresh_sinks: bool = False) -> RestoreSettings:
        return RestoreSettings(self.kept, fresh_sinks=fresh_sinks, held=True)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_whoever_comes_first_goes_back_and_the_others_begin_with_its_checkpoint(cluster: Cluster) -> None:
    # The node that does not have the checkpoint, for once.
    cluster.start("n2", 1, cluster.back())
    assert (cluster.home("n2").committed(), cluster.home("n2").replicas()) == (Committed(3), {})
    assert (cluster.home("n2").history(), cluster.history) == (1, 1)
    # The sinks have epochs 4 and 5: they are done again as they were, and skipped.
    assert cluster.agreed() == [1, 2, 3, 4, 5]
    assert cluster.replica("n1").committed() == Committed(5)
    # What the other one still has is of the history before, and is no sibling's.
    assert cluster.begun_by_sibling("n2") == 3
    cluster.start("n1", 1, cluster.back())
    assert (cluster.home("n1").replicas(), cluster.home("n1").history()) == ({}, 1)
    assert cluster.begun_by_sibling("n1") == 3
    assert cluster.replica("n1").committed() == Committed(3)
    assert cluster.kept.is_dir()
    assert cluster.out.read_text() == "row\n"


def test_a_node_begins_with_what_was_restored_on_another_also_before_a_replica_runs_there(cluster: Cluster) -> None:
    for node in REPLICAS:
        cluster.start(node, 1, cluster.back())
    assert (cluster.home("n1").replicas(), cluster.begun_by_sibling("n2")) == ({}, 3)


def test_it_is_done_once_however_often_a_node_is_started(cluster: Cluster) -> None:
    for node in REPLICAS:
        cluster.start(node, 1, cluster.back())
    cluster.replica("n1").path.mkdir(parents=True)
    cluster.replica("n1").record(Committed(9))
    for node in REPLICAS:
        cluster.start(node, 1, cluster.back())
    assert cluster.replica("n1").committed() == Committed(9)


def test_with_fresh_sinks_other_epochs_come_in_the_place_of_the_later_ones(cluster: Cluster) -> None:
    cluster.start("n1", 1, cluster.back(fresh_sinks=True))
    assert cluster.agreed() == [1, 2, 3]
    assert cluster.out.read_text() == ""
    cluster.write_output(4)
    cluster.start("n2", 1, cluster.back(fresh_sinks=True))
    assert cluster.out.read_text() == "row\n"


def test_where_it_cannot_go_on_nothing_is_cleared(cluster: Cluster) -> None:
    cluster.write_output(9)
    for node in REPLICAS:
        with pytest.raises(DeliveryError, match="sink 'out' has come to epoch 9, and the epoch log does not know"):
            cluster.start(node, 1, cluster.back())
        assert cluster.replica(node).committed() == Committed(5)
    assert cluster.history == 0


def killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["penstock.cli.replicas.put_in_place", "penstock.control.making_ready.note_history",
                                   "penstock.runtime.state_folder.StateFolder.note_history",
                                   "penstock.epochs.log.EpochLog.imported",
                                   "penstock.runtime.state_folder.StateFolder.forget_replicas"])  # fmt: skip
@pytest.mark.parametrize("next_one", ["n1", "n2"])
@pytest.mark.parametrize("fresh_sinks", [False, True])
def test_a_node_that_is_killed_over_it_leaves_it_to_whoever_comes_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, where: str, next_one: str, fresh_sinks: bool
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(where, killed)
        with pytest.raises(KeyboardInterrupt):
            cluster.start("n1", 1, cluster.back(fresh_sinks))
    assert cluster.history == 0
    cluster.start(next_one, 1, cluster.back(fresh_sinks))
    assert (cluster.home(next_one).committed(), cluster.home(next_one).replicas()) == (Committed(3), {})
    assert cluster.agreed() == ([1, 2, 3] if fresh_sinks else [1, 2, 3, 4, 5])
    other = "n2" if next_one == "n1" else "n1"
    cluster.start(other, 1, cluster.back(fresh_sinks))
    for node in (next_one, other):
        assert cluster.begun_by_sibling(node) == 3
        assert not cluster.home(node).restored.exists()
    assert cluster.history == 1


def test_a_node_that_was_killed_before_it_cleared_what_it_has_does_so_later(cluster: Cluster) -> None:
    cluster.start("n1", 1, fresh=True)
    # The console has noted that it began anew; its process never came to it.
    cluster.start("n2", 1)
    assert cluster.home("n2").replicas() == {}


def test_a_coordinator_that_was_lost_is_no_reason_to_go_back_again(cluster: Cluster) -> None:
    cluster.start("n1", 1, cluster.back(fresh_sinks=True))
    assert cluster.begun_by_sibling("n1") == 3
    cluster.replica("n1").record(Committed(8))
    cluster.write_output(8)
    for file in cluster.folder.glob("shared.sqlite*"):
        file.unlink()
    for node in REPLICAS:
        with pytest.raises(CoordinationError, match="state of another history"):
            cluster.start(node, 1, cluster.back(fresh_sinks=True))
    assert cluster.out.read_text() == "row\n"


def test_who_waited_for_its_turn_while_another_history_was_begun_does_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def long_turn(coordinator: Coordinator) -> Iterator[None]:
        note_history(coordinator, 1)
        yield

    monkeypatch.setattr(making_ready, "alone", long_turn)
    with pytest.raises(CoordinationError, match="was begun anew while this node waited"):
        cluster.start("n2", 0)
    assert (cluster.history, cluster.home("n2").history()) == (1, 0)


def test_who_was_frozen_in_its_turn_leaves_what_another_has_made_ready(cluster: Cluster) -> None:
    def frozen(to: Callable[[int], None], lock: int) -> None:
        to(lock)
        with cluster.opened() as coordinator:
            note_history(coordinator, 1)

    run = RunSettings(state=cluster.home("n1").path, coordinator=cluster.address)
    back = functools.partial(_go_back, cluster.topology, cluster.back(True), run, lambda _: None)
    made = Supervisor(cluster.topology, ReplicaPlace(cluster.home("n1")), ["true"], cluster.address,
                      share=cluster.share("n1", 1), go_back=functools.partial(frozen, back))  # fmt: skip
    with pytest.raises(CoordinationError, match="another node has made 'words' ready meanwhile"):
        made.start(False)
    assert cluster.agreed() == [1, 2, 3, 4, 5]
    assert cluster.out.read_text() == "row\n"


def test_a_sink_without_output_is_given_what_siblings_have_delivered_before(cluster: Cluster) -> None:
    with cluster.opened() as coordinator:
        EpochLog(coordinator).delivered(4, "1")
    for file in (cluster.out, cluster.folder / ".out.jsonl.epochs"):
        file.unlink()
    cluster.start("n1", 1, cluster.back())
    with cluster.opened() as coordinator:
        assert EpochLog(coordinator).delivered_by(4) is None
