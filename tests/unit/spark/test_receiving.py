"""What a reader does while its run is frozen: it cuts epochs, and hands over none until the run goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.lookup_tables import enrichment_to_json
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.spark import epoch_source
from penstock.spark.epoch_source import EpochReader
from penstock.spark.read_settings import ReadSettings
from penstock.spark.signals import Held, Signals
from penstock.topology.enrichment import Enrich
from penstock.topology.model import FrozenOptions, Source
from penstock.topology.schema import parse_schema


class Frozen:
    """A reader of a run that is frozen and goes on as the test says, ten tuples an epoch."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 1000) -> None:
        self.source = Source("s", "generator", FrozenOptions(generator={"id": "sequence"}, count=count))
        self.folder, self.now = folder, 1000.0
        self.signals = Signals(folder, "run")
        self.reader = self.new_reader()
        self.offset = self.reader.initialOffset()
        self._coordinator = open_coordinator(f"sqlite:{folder}/c.sqlite")
        self.log = EpochLog(self._coordinator)
        clock = SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now, sleep=time.sleep)
        monkeypatch.setattr(epoch_source, "time", clock)

    def new_reader(self, **further: Any) -> EpochReader:
        folder = str(self.folder)
        settings = ReadSettings("t", folder, folder, f"sqlite:{folder}/c.sqlite", "run", (self.source,), 10, 1,
                                alone=True, **further)  # fmt: skip
        return EpochReader(ReadSettings.from_json(settings.to_json()), "s")

    def look(self, after: float = 0.0) -> int:
        """The epoch that it is at when Spark has asked once more."""
        self.now += after
        self.offset = self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
        return int(self.offset["epoch"])

    def close(self) -> None:
        self._coordinator.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Frozen]:
    made = Frozen(tmp_path, monkeypatch)
    assert made.look() == 1
    made.signals.hold(Held.RECEIVING)
    yield made
    made.close()


def test_epochs_are_cut_ahead_and_done_one_after_the_other_when_it_goes_on(run: Frozen) -> None:
    assert [run.look(0.6) for _ in range(4)] == [1, 1, 1, 1]
    assert run.log.agreed() == [1, 2, 3, 4]
    assert run.signals.received() == 3
    run.signals.hold(Held.NOT)
    assert [run.look() for _ in range(4)] == [2, 3, 4, 5]
    ends = [run.log.get(epoch) for epoch in range(1, 6)]
    assert [record.ends["s"]["row"] for record in ends if record] == [10, 20, 30, 40, 50]
    # Their time is when they were cut, and not when they are done.
    assert [record.time_ms for record in ends[:3] if record] == [1000_000, 1001_200, 1001_800]


def test_they_are_cut_no_sooner_than_half_a_second_after_each_other(run: Frozen) -> None:
    for _ in range(20):
        run.look(0.05)
    assert len(run.log.agreed()) <= 3


def test_a_run_that_stands_still_receives_nothing(run: Frozen) -> None:
    run.signals.hold(Held.STILL)
    assert [run.look(0.6) for _ in range(3)] == [1, 1, 1]
    assert run.log.agreed() == [1]


def test_nothing_is_cut_behind_the_last_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Frozen(tmp_path, monkeypatch, count=30)
    run.look()
    run.signals.hold(Held.RECEIVING)
    for _ in range(6):
        run.look(0.6)
    newest = run.log.newest()
    assert newest is not None and newest.last and newest.epoch == 3
    run.close()


def test_nothing_is_cut_when_it_is_to_stop(run: Frozen) -> None:
    run.signals.want_stop()
    run.look(0.6)
    run.look(0.6)
    assert run.log.agreed() == [1]


def test_a_reader_that_is_started_while_it_is_frozen_goes_on_where_the_log_ends(run: Frozen) -> None:
    for _ in range(3):
        run.look(0.6)
    run.reader = run.new_reader()
    for _ in range(3):
        run.look(0.6)
    assert run.offset["epoch"] == 1
    assert run.log.agreed() == [1, 2, 3, 4, 5]
    assert run.signals.received() == 4


def test_tuples_that_have_no_room_in_an_epoch_are_in_the_next_however_long_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Frozen(tmp_path, monkeypatch)
    run.look()
    run.signals.hold(Held.RECEIVING)
    run.look()
    run.now += 3600
    rows = []
    for _ in range(5):
        run.look(0.6)
        newest = run.log.newest()
        assert newest is not None and newest.backlog > 0
        rows.append(newest.ends["s"]["row"])
    assert rows == [20, 30, 40, 50, 60]
    run.close()


def test_what_a_frozen_sibling_cuts_is_not_cut_again(run: Frozen) -> None:
    sibling = run.new_reader()
    start = run.offset
    for _ in range(4):
        run.look(0.3)
        assert sibling.latestOffset(start, sibling.getDefaultReadLimit())["epoch"] == 1
    assert run.log.agreed() == list(range(1, len(run.log.agreed()) + 1))
    assert len(run.log.agreed()) <= 4


def test_tables_stay_as_they_were_when_it_was_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Frozen(tmp_path, monkeypatch)
    (tmp_path / "prices.csv").write_text("1,10\n")
    priced = Enrich("priced", (), table="prices.csv", keys=("id",), schema=parse_schema("id int, price int"))
    run.reader = run.new_reader(tables=[enrichment_to_json(priced)])
    run.look()
    before = json.loads(run.offset["tables"])
    run.signals.hold(Held.RECEIVING)
    (tmp_path / "prices.csv").write_text("1,20\n2,30\n")
    for _ in range(3):
        run.look(2.0)
    found = [run.log.get(epoch) for epoch in (2, 3)]
    assert [dict(record.tables) for record in found if record] == [before, before]
    run.signals.hold(Held.NOT)
    for _ in range(5):
        run.look(2.0)
    assert json.loads(run.offset["tables"]) != before
    run.close()
