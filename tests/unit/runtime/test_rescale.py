from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from penstock.errors import CoordinationError, TopologyError
from penstock.runtime.compatibility import shape_of
from penstock.runtime.rescale import check_rescale, rescale
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.topology.model import Count, Filter, FrozenOptions, Sink, Source, StreamRef, Topology

from ...waiting import wait_until
from .stored_state import stored


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return Topology(
        "words",
        sources=(Source("s", "file", FrozenOptions(file="s.csv")),),
        operators=(Filter("long", (StreamRef("s"),), condition="true"), Count("counts", (StreamRef("long"),)),
                   Count("words", (StreamRef("long"),), keys=("word",))),
        sinks=(Sink("out", StreamRef("counts"), "console", FrozenOptions()),),
        folder=tmp_path,
    )


@pytest.mark.parametrize(("operator", "number", "said"), [
    ("counts", 0, "'counts=0': an operator needs at least one instance"),
    ("counts", -2, "needs at least one instance"),
    ("count", 3, "there is no operator 'count' in topology 'words'; did you mean 'counts'?"),
    ("long", 3, "'long' remembers nothing that could be divided.*with state there are: counts, words"),
])
def test_what_cannot_be_divided_is_told_before_anything_is_done(
    topology: Topology, operator: str, number: int, said: str
) -> None:
    with pytest.raises(TopologyError, match=said):
        check_rescale(topology, operator, number)


def test_without_an_epoch_there_is_nothing_to_divide(topology: Topology) -> None:
    with pytest.raises(CoordinationError, match=r"no epoch yet, .* set `parallelism` in the file"):
        rescale(topology, "counts", 3)


def test_what_has_come_to_its_end_is_not_divided(topology: Topology) -> None:
    state = stored(StateFolder.of(topology).path, of=shape_of(topology, 2))
    state.record(Committed(3, ended=True))
    with pytest.raises(CoordinationError, match="its next start begins anew"):
        rescale(topology, "counts", 3)


def test_the_same_number_changes_nothing(topology: Topology) -> None:
    state = stored(StateFolder.of(topology).path, of=shape_of(topology, 2))
    before = sorted(state.path.rglob("*"))
    done = rescale(topology, "counts", 2)
    assert (done.before, done.after, done.epoch, done.operators) == (2, 2, 3, ("counts", "words"))
    assert not done.stopped
    assert [path for path in sorted(state.path.rglob("*")) if path.name != "holder"] == before


def test_a_running_topology_is_asked_to_stop(topology: Topology) -> None:
    state = stored(StateFolder.of(topology).path, of=shape_of(topology, 2))
    held = threading.Event()

    def run() -> None:
        with state.held():
            held.set()
            wait_until(state.hears_stop)

    running = threading.Thread(target=run)
    running.start()
    held.wait()
    said: list[str] = []
    assert rescale(topology, "counts", 2, say=said.append).stopped
    running.join()
    assert said == [f"asking process {os.getpid()}, which runs it, to stop at the end of its epoch"]
