"""What a node reads of a topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.console.home import TopologyPlace
from penstock.console.topology_log import DELIVERIES, newest_deliveries, newest_progress
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.log import EpochLog
from penstock.runtime.progress_file import ProgressFile


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
    place.log.write_text('{"event": "progress", "epoch": 3}\n')
    assert (newest_progress(place) or {})["epoch"] == 3
    ProgressFile(place.progress).write({"epoch": 4})
    assert (newest_progress(place) or {})["epoch"] == 4
