from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.spark.clock import ClockReader, ClockSettings
from penstock.spark.read_settings import ReadSettings
from penstock.topology.model import FrozenOptions, Source

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def reader(folder: Path, by_epoch_time: bool = False) -> ClockReader:
    source = Source("a", "rows", FrozenOptions(rows=[]))
    coordinator = f"sqlite:{folder}/c.sqlite"
    settings = ReadSettings("t", str(folder), str(folder), coordinator, "run", (source,), 1, 1, interval_ms=500)
    return ClockReader(settings, ClockSettings(("a", "b"), by_epoch_time))


def offset(*ended: str) -> dict[str, Any]:
    return {"epoch": 7, "time_ms": int(NOON.timestamp() * 1000), "ended": json.dumps(ended)}


def told(clock: ClockReader, *ended: str) -> list[datetime]:
    """The times that a clock tells, as the tasks read them; what is read ahead must be the same."""
    parts = clock.partitions(offset(), offset(*ended))
    ahead = clock.getCache(offset(), offset(*ended))
    sent: ClockReader = pickle.loads(pickle.dumps(clock))
    times = [time for part in parts for rows in sent.read(part) for time in rows.column("time").to_pylist()]
    assert [time for rows in ahead or () for time in rows.column("time").to_pylist()] == times
    return times


def test_a_clock_is_silent_until_all_sources_of_its_window_have_ended(tmp_path: Path) -> None:
    clock = reader(tmp_path)
    assert told(clock) == told(clock, "a") == told(clock, "b", "c") == []
    assert told(clock, "a", "b", "c") == [datetime(9999, 1, 1, tzinfo=UTC)]


def test_the_clock_of_a_window_over_the_time_of_epochs_tells_that_time(tmp_path: Path) -> None:
    clock = reader(tmp_path, by_epoch_time=True)
    assert told(clock, "a") == [NOON]
    assert told(clock, "a", "b") == [datetime(9999, 1, 1, tzinfo=UTC)]


def test_the_settings_of_a_clock_survive_the_way_to_its_process() -> None:
    settings = ClockSettings(("a", "b"), True)
    assert ClockSettings.from_json(settings.to_json()) == settings


def test_a_clock_that_is_asked_first_waits_for_the_interval_as_others_do(tmp_path: Path) -> None:
    clock = reader(tmp_path)
    assert clock._is_too_soon({"epoch": 1, "time_ms": 1000}, 1100)
    assert not clock._is_too_soon({"epoch": 1, "time_ms": 1000}, 1500)
