"""What a run tells whoever has it, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock import Topology
from penstock.errors import PenstockError
from penstock.runtime.run import Run


@pytest.mark.parametrize("change", ["a rescale", "another checkpoint"])
def test_that_the_state_is_changed_is_told_before_the_query_is_stopped(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    made = Topology("alone").source("words", rows=[], schema="word string").sink("out", console=True)
    run = Run(made)
    done: list[str] = []
    run.before_change = lambda: done.append("told")

    def end() -> None:
        done.append("stopped")
        raise ConnectionError

    monkeypatch.setattr(run, "_end_query", end)
    run._committer = SimpleNamespace(retire=lambda: None, finished_batch=None)  # type: ignore[assignment]
    with pytest.raises(PenstockError):
        run._goes_on_rescaled() if change == "a rescale" else run.go_on_from(lambda: None)
    assert done == ["told", "stopped"]
