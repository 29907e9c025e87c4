"""What a run tells whoever has it, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock import Topology
from penstock.errors import CoordinationError, PenstockError
from penstock.runtime.run import Run, RunSettings
from penstock.runtime.state_folder import COMMAND_SECONDS, StateFolder


@pytest.mark.parametrize(("replica", "patience"), [(None, 0.0), ("2", COMMAND_SECONDS)])
def test_a_replica_waits_for_a_command_that_is_at_its_state(
    monkeypatch: pytest.MonkeyPatch, replica: str | None, patience: float
) -> None:
    made = Topology("alone").source("words", rows=[], schema="word string").sink("out", console=True)
    asked: list[float] = []

    def held(_: StateFolder, patience: float = 0.0) -> None:
        asked.append(patience)
        raise CoordinationError("running already")

    monkeypatch.setattr(StateFolder, "held", held)
    with pytest.raises(CoordinationError, match="running already"):
        Run(made, RunSettings(replica=replica)).start()
    assert asked == [patience]


@pytest.mark.parametrize("change", ["a rescale", "another checkpoint"])
def test_that_the_state_is_changed_is_told_when_the_epoch_in_flight_is_done_and_before_the_query_is_stopped(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Who is told leaves the replica alone: an epoch that never ends, as that of a dead cluster, must be noticed."""
    made = Topology("alone").source("words", rows=[], schema="word string").sink("out", console=True)
    run = Run(made)
    done: list[str] = []
    run.before_change = lambda: done.append("told")

    def end() -> None:
        done.append("stopped")
        raise ConnectionError

    monkeypatch.setattr(run, "_end_query", end)
    run._committer = SimpleNamespace(retire=lambda: done.append("retired"), finished_batch=None)  # type: ignore[assignment]
    with pytest.raises(PenstockError):
        run._goes_on_rescaled() if change == "a rescale" else run.go_on_from(lambda: None)
    assert done == ["retired", "told", "stopped"]
