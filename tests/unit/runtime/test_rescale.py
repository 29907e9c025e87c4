from __future__ import annotations

import os
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from penstock.errors import CoordinationError, TopologyError
from penstock.runtime.compatibility import shape_of
from penstock.runtime.division import Rescaled, check_rescale
from penstock.runtime.rescale import rescale
from penstock.runtime.rescale_request import Reply, RescaleRequest, reply, reply_to, take_request
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.topology.model import Count, Filter, FrozenOptions, Sink, Source, StreamRef, Topology

from ...waiting import PATIENCE_SECONDS, wait_until
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


class FakeRun:
    """Holds the folder as a run does, in another thread, and does with the first request what it is told to."""

    def __init__(self, state: StateFolder, *replies: Reply) -> None:
        self._state = state
        self._replies = replies
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> FakeRun:
        self._thread.start()
        assert self._held.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        with self._state.held():
            self._held.set()
            found: list[RescaleRequest | None] = []
            wait_until(lambda: found.append(take_request(self._state)) or found[-1])  # type: ignore[func-returns-value]
            request = found[-1]
            assert request is not None
            for each in self._replies:
                reply(self._state, request, each)
            if self._replies and not self._replies[-1].stops:
                # Until the command has read it, and is done.
                wait_until(lambda: reply_to(self._state, request) is None)


@pytest.fixture
def state(topology: Topology) -> StateFolder:
    return stored(StateFolder.of(topology).path, of=shape_of(topology, 2))


def test_a_run_is_asked_to_do_it_and_goes_on(topology: Topology, state: StateFolder) -> None:
    done = Rescaled(7, 2, 5, ("counts", "words"), went_on=True)
    said: list[str] = []
    with FakeRun(state, Reply(done=asdict(done))):
        assert rescale(topology, "counts", 5, say=said.append) == done
    assert said == [f"asking process {os.getpid()}, which runs it"]
    assert not list(state.path.glob("rescale-*"))


def test_what_a_run_refuses_is_told_in_its_words(topology: Topology, state: StateFolder) -> None:
    with (FakeRun(state, Reply("dividing"), Reply(refused="Spark could not divide the state")),
          pytest.raises(CoordinationError, match="Spark could not divide the state")):
        rescale(topology, "counts", 5)
    assert not list(state.path.glob("rescale-*"))


def test_what_a_run_leaves_to_the_command_the_command_does(topology: Topology, state: StateFolder) -> None:
    said: list[str] = []
    with FakeRun(state, Reply("stopping", stops=True)):
        done = rescale(topology, "counts", 2, say=said.append)
    assert (done.before, done.after, done.stopped, done.went_on) == (2, 2, True, False)
    assert said[-1] == "stopping"


def test_when_the_run_dies_before_it_has_answered_the_command_does_it(topology: Topology, state: StateFolder) -> None:
    with FakeRun(state):
        done = rescale(topology, "counts", 2)
    assert (done.before, done.after, done.stopped, done.went_on) == (2, 2, False, False)


def test_a_process_that_never_answers_is_named(
    topology: Topology, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.runtime.rescale._HEARING_SECONDS", 0.1)
    with state.held(), pytest.raises(CoordinationError, match=rf"process {os.getpid()}.*has not answered"):
        rescale(topology, "counts", 3)
    assert not list(state.path.glob("rescale-*"))
