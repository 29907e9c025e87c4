"""The jobs with which Penstock stands beside other systems give what they must, a few tuples of each."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TUPLES = 1_000


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The benchmarks' modules, found as their programs find them."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(BENCHMARKS / "peers_jobs")
    yield importlib.import_module


@pytest.mark.parametrize("job", ["stateless", "word-count", "function", "batch-function", "json"])
def test_a_job_of_penstock_gives_what_every_contestant_must(found: Any, project: Any, job: str) -> None:
    events = found("side_by_side.events").write_events(project.folder / "events", 1) if job == "json" else None
    tuples, given = (TUPLES, None) if events is None else (events.lines, events.folder)
    work = found("work").Work(job, tuples, project.folder / "work", given)
    assert found("penstock_job").timed(work, project.spark) > 0
    counts = {} if events is None else events.counts
    answer = found("side_by_side.answers").answer_of(job, work.out, tuples, counts)
    assert answer.right, answer
