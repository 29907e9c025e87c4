"""A reader that asks the log for its next epoch, and cuts it where nobody has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.orders import Orders
from penstock.epochs.record import EpochRecord
from penstock.spark.epoch_source import EpochReader
from penstock.spark.faults import WorkerFault
from penstock.spark.read_settings import ReadSettings
from penstock.topology.model import FrozenOptions, Source
from penstock.topology.schema import parse_schema

ROWS = [{"word": "a"}, {"word": "b"}]


@pytest.fixture
def reader(tmp_path: Path) -> EpochReader:
    source = Source("s", "rows", FrozenOptions(rows=ROWS), parse_schema("word string"))
    return EpochReader(ReadSettings("t", str(tmp_path), str(tmp_path), address(tmp_path), "run", (source,), 10, 1), "s")


def address(folder: Path) -> str:
    return f"sqlite:{folder}/c.sqlite"


def next_offset(reader: EpochReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def test_the_end_of_the_input_is_the_last_epoch(reader: EpochReader) -> None:
    assert next_offset(reader, reader.initialOffset())["last"]


def test_an_end_that_is_held_is_waited_at_until_it_is_released(reader: EpochReader, tmp_path: Path) -> None:
    coordinator = open_coordinator(address(tmp_path))
    try:
        Orders(coordinator).hold_end("script")
        first = next_offset(reader, reader.initialOffset())
        assert (first["epoch"], first["last"]) == (1, False)
        assert next_offset(reader, first) == first
        Orders(coordinator).release_end("script")
        last = next_offset(reader, first)
        assert (last["epoch"], last["last"], last["ends"]) == (2, True, first["ends"])
    finally:
        coordinator.close()


def test_one_that_is_too_far_behind_cuts_nothing_again(reader: EpochReader, tmp_path: Path) -> None:
    start = reader.initialOffset()
    coordinator = open_coordinator(address(tmp_path))
    try:
        log = EpochLog(coordinator)
        for epoch in range(1, 10):
            log.propose(EpochRecord(epoch, 0, {"s": {"row": 1}}, {"s": 0}))
        log.note_progress("1", 6)
        log.forget_unneeded(kept=0)
        # Not taken for a coordinator that is away, which would be waited for.
        with pytest.raises(WorkerFault, match="epoch 1 was agreed long ago"):
            next_offset(reader, start)
        assert log.agreed() == [7, 8, 9]
    finally:
        coordinator.close()
