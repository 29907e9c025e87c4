"""How many tuples a reader allows the next epoch, by how long the last one took."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.spark import epoch_source
from penstock.spark.epoch_source import EpochReader
from penstock.spark.read_settings import ReadSettings
from penstock.topology.model import FrozenOptions, Source


def reader(folder: Path, most: int) -> EpochReader:
    source = Source("s", "generator", FrozenOptions(generator={"id": "sequence"}, count=1000))
    coordinator = f"sqlite:{folder}/c.sqlite"
    settings = ReadSettings("t", str(folder), str(folder), coordinator, "run", (source,), 10, 1,
                            most_tuples=most, alone=True)
    return EpochReader(ReadSettings.from_json(settings.to_json()), "s")


def sizes(one: EpochReader, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> list[int]:
    """Of epochs that take so long, one after the other."""
    now, offset, found = [0.0], one.initialOffset(), []

    monkeypatch.setattr(epoch_source, "time", SimpleNamespace(time=time.time, monotonic=lambda: now[0]))
    for each in seconds:
        offset = one.latestOffset(offset, one.getDefaultReadLimit())
        found.append(_tuples(offset))
        now[0] += each
    return found


def _tuples(offset: dict[str, Any]) -> int:
    return int(json.loads(offset["tuples"])["s"])


def test_epochs_grow_while_they_are_quick_and_shrink_again_when_they_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = (0.2, 0.5, 0.9, 2.0, 9.0, 9.0, 9.0, 0.1, 0.1)
    assert sizes(reader(tmp_path, 40), monkeypatch, *seconds) == [10, 20, 40, 40, 40, 20, 10, 10, 20]


def test_epochs_stay_as_large_as_somebody_has_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes(reader(tmp_path, 10), monkeypatch, 0.1, 0.1, 9.0, 0.1) == [10] * 4


def test_who_starts_anew_begins_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reader(tmp_path, 40)
    sizes(first, monkeypatch, 0.1, 0.1, 0.1)
    again = reader(tmp_path, 40)
    # These three are in the log; how long they took then says nothing.
    assert sizes(again, monkeypatch, 0.1, 0.1, 0.1, 0.1, 0.1) == [10, 20, 40, 10, 20]
