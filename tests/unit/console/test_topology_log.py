"""What a node reads of a topology."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.console.home import TopologyPlace
from penstock.console.topology_log import DELIVERIES, newest_deliveries, newest_progress
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.log import EpochLog
from penstock.runtime.progress_file import ProgressFile

PROGRESS = {"epoch": 3, "lag": 0, "late": 0, "tuples": {"a": 1, "b": None}, "delivered": {}, "failed": {}}


def test_who_delivered_the_last_epochs_is_a_digit_each() -> None:
    coordinator = MemoryCoordinator()
    assert newest_deliveries(coordinator) == (0, "")
    log = EpochLog(coordinator)
    for epoch, replica in ((7, "1"), (8, "2"), (10, "1")):
        log.delivered(epoch, replica)
    assert newest_deliveries(coordinator) == (7, "12-1")
    for epoch in range(11, 100):
        log.delivered(epoch, "2")
    assert newest_deliveries(coordinator) == (100 - DELIVERIES, "2" * DELIVERIES)


def test_only_the_last_deliveries_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator, read = MemoryCoordinator(), list[str]()
    for epoch in range(1, 200):
        EpochLog(coordinator).delivered(epoch, "1")
    get, entries = coordinator.get, coordinator.entries

    def counted_get(key: str) -> str | None:
        read.append(key)
        return get(key)

    def counted_entries(prefix: str) -> dict[str, str]:
        found = entries(prefix)
        read.extend(found)
        return found

    monkeypatch.setattr(coordinator, "get", counted_get)
    monkeypatch.setattr(coordinator, "entries", counted_entries)
    assert newest_deliveries(coordinator) == (200 - DELIVERIES, "1" * DELIVERIES)
    assert len(read) == DELIVERIES


def test_progress_is_what_its_file_says_and_without_one_the_log(tmp_path: Path) -> None:
    place = TopologyPlace(tmp_path)
    assert newest_progress(place) is None
    place.log.write_text(json.dumps({"event": "progress", **PROGRESS}) + "\n")
    assert (newest_progress(place) or {})["epoch"] == 3
    ProgressFile(place.progress).write({**PROGRESS, "epoch": 4})
    assert (newest_progress(place) or {})["epoch"] == 4


@pytest.mark.parametrize(
    "odd",
    [
        {"event": "progress"},
        {**PROGRESS, "epoch": "3"},
        {**PROGRESS, "tuples": None},
        {**PROGRESS, "delivered": {"out": "many"}},
        {**PROGRESS, "lag": float("nan")},
        {**PROGRESS, "epoch_ms": None},
        {**PROGRESS, "age_ms": "old"},
        [],
        "3",
    ],
)
def test_what_the_authors_code_prints_or_writes_is_not_taken_for_progress(tmp_path: Path, odd: Any) -> None:
    place = TopologyPlace(tmp_path)
    place.log.write_text(json.dumps({"event": "progress", **PROGRESS}) + "\n" + json.dumps(odd) + "\n")
    place.progress.write_text(json.dumps(odd))
    assert (newest_progress(place) or {})["epoch"] == 3
