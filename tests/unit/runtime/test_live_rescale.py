"""A run that is asked for a rescale, with a stand-in for what Spark does to the checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from penstock.runtime.compatibility import shape_of
from penstock.runtime.live_rescale import LiveRescale
from penstock.runtime.rescale_request import (
    Reply,
    RescaleRequest,
    ask,
    forget_old_requests,
    reply,
    reply_to,
    take_request,
    withdraw,
)
from penstock.runtime.state_files import newest_committed, state_partitions
from penstock.runtime.state_folder import StateFolder
from penstock.topology.model import Count, Filter, FrozenOptions, Sink, Source, StreamRef, Topology

from .stored_state import stored, write_batch, write_whole

SPARK: Any = None
"""Nobody looks at it: what is done with it is replaced."""


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return Topology(
        "words",
        sources=(Source("s", "file", FrozenOptions(file="s.csv")),),
        operators=(Filter("long", (StreamRef("s"),), condition="true"),
                   Count("counts", (StreamRef("long"),), keys=("word",))),
        sinks=(Sink("out", StreamRef("counts"), "console", FrozenOptions()),),
        folder=tmp_path,
    )


@pytest.fixture
def state(topology: Topology) -> StateFolder:
    return stored(StateFolder.of(topology).path, of=shape_of(topology, 2))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def live(topology: Topology, state: StateFolder, said: list[str]) -> LiveRescale:
    return LiveRescale(topology, state, said.append)


@pytest.fixture(autouse=True)
def spark_divides(monkeypatch: pytest.MonkeyPatch) -> None:
    def divide(_: Any, checkpoint: Path, instances: int) -> None:
        write_batch(checkpoint, 3, instances)
        for partition in range(instances):
            write_whole(checkpoint / "state" / "0" / str(partition), 4)

    _let_spark(monkeypatch, divide)


def _let_spark(monkeypatch: pytest.MonkeyPatch, divide: Any) -> None:
    monkeypatch.setattr("penstock.runtime.division.divide_state", divide)
    monkeypatch.setattr("penstock.runtime.division.forget_loaded_state", lambda _: None)


def asked(state: StateFolder, operator: str = "counts", instances: int = 5) -> RescaleRequest:
    return ask(state, os.getpid(), operator, instances)


def divided(state: StateFolder) -> int:
    newest = newest_committed(state.checkpoint)
    assert newest is not None
    return state_partitions(state.checkpoint, newest)


def test_a_request_is_heard_once_and_only_by_the_process_it_is_for(state: StateFolder) -> None:
    ask(state, 1, "counts", 5)
    mine = asked(state)
    assert take_request(state) == mine
    assert take_request(state) is None


def test_a_start_forgets_what_earlier_runs_were_asked_and_said(state: StateFolder) -> None:
    ask(state, 1, "counts", 5)
    mine = asked(state)
    reply(state, RescaleRequest("old", 1, "counts", 5), Reply("dividing"))
    forget_old_requests(state)
    assert [path.name for path in state.path.glob("rescale-*")] == [f"rescale-asked-{mine.id}"]


def test_a_request_that_is_withdrawn_is_not_heard(state: StateFolder, live: LiveRescale) -> None:
    withdraw(state, asked(state))
    assert not live.hear()
    assert not live.wanted


def test_the_state_is_divided_and_the_command_told_when_the_run_goes_on(
    state: StateFolder, live: LiveRescale, said: list[str]
) -> None:
    request = asked(state)
    assert live.hear()
    assert live.wanted
    assert reply_to(state, request) == Reply("finishing the epoch, to divide the state anew")
    live.carry_out(SPARK)
    assert divided(state) == 5
    found = reply_to(state, request)
    assert found == Reply("dividing the state of epoch 3 over 5 instances instead of 2")
    live.answer(going_on=True)
    assert not live.wanted
    found = reply_to(state, request)
    assert found is not None
    assert found.done == {"epoch": 3, "before": 2, "after": 5, "operators": ["counts"], "stopped": False,
                          "went_on": True}
    assert said[-1] == "going on with 5 instances instead of 2, as of epoch 3"


def test_requests_are_done_one_after_the_other(state: StateFolder, live: LiveRescale) -> None:
    both = [asked(state), asked(state, instances=3)]
    assert live.hear()
    assert not live.hear()
    assert sum(reply_to(state, each) is not None for each in both) == 1
    live.carry_out(SPARK)
    live.answer(going_on=True)
    assert live.hear()


@pytest.mark.parametrize(("operator", "number", "refused"), [
    ("counts", 0, "needs at least one instance"),
    ("long", 5, "remembers nothing that could be divided"),
    ("none", 5, "there is no operator 'none'"),
])
def test_what_cannot_be_is_refused_without_stopping_anything(
    operator: str, number: int, refused: str, state: StateFolder, live: LiveRescale
) -> None:
    request = asked(state, operator, number)
    assert not live.hear()
    assert not live.wanted
    found = reply_to(state, request)
    assert found is not None
    assert refused in str(found.refused)


def test_the_same_number_is_answered_without_stopping_anything(state: StateFolder, live: LiveRescale) -> None:
    request = asked(state, instances=2)
    assert not live.hear()
    found = reply_to(state, request)
    assert found is not None
    assert found.done is not None
    assert (found.done["before"], found.done["after"], found.done["went_on"]) == (2, 2, True)


def test_before_the_first_epoch_there_is_nothing_to_divide(
    topology: Topology, tmp_path: Path, said: list[str]
) -> None:
    empty = StateFolder(tmp_path / "empty")
    empty.path.mkdir()
    request = asked(empty)
    assert not LiveRescale(topology, empty, said.append).hear()
    found = reply_to(empty, request)
    assert found is not None
    assert "has committed no epoch yet" in str(found.refused)


def test_a_division_that_fails_leaves_the_state_as_it_was(
    state: StateFolder, live: LiveRescale, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any, checkpoint: Path, instances: int) -> None:
        write_batch(checkpoint, 3, instances)
        raise RuntimeError("no such thing")

    _let_spark(monkeypatch, fail)
    request = asked(state)
    before = sorted(path for path in state.checkpoint.rglob("*"))
    assert live.hear()
    live.carry_out(SPARK)
    live.answer(going_on=True)
    found = reply_to(state, request)
    assert found is not None
    assert "Spark could not divide the state: no such thing" in str(found.refused)
    assert sorted(path for path in state.checkpoint.rglob("*")) == before
    assert said[-1].startswith("the state stays divided as it is: Spark could not")


def test_a_jvm_that_is_gone_is_for_the_run_to_tell(
    state: StateFolder, live: LiveRescale, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    _let_spark(monkeypatch, fail)
    request = asked(state)
    assert live.hear()
    with pytest.raises(Py4JNetworkError):
        live.carry_out(SPARK)
    # The command that waits does it itself, when the run has ended.
    found = reply_to(state, request)
    assert found is not None
    assert (found.done, found.refused) == (None, None)
    assert divided(state) == 2


def test_a_run_that_cannot_go_on_leaves_it_to_the_command(state: StateFolder, live: LiveRescale) -> None:
    request = asked(state)
    assert live.hear()
    live.leave_to_command()
    assert not live.wanted
    found = reply_to(state, request)
    assert found is not None
    assert found.stops
