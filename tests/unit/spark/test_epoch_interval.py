"""How long after an epoch the next one is cut, by a reader that many replicas have."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.spark import epoch_source
from penstock.spark.epoch_source import EpochReader
from penstock.spark.read_settings import ReadSettings
from penstock.topology.model import FrozenOptions, Source


class Clock:
    """Both clocks of a machine; somebody may set the one on the wall."""

    def __init__(self) -> None:
        self.wall = self.steady = 1000.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(epoch_source, "time", made)
    return made


def reader(folder: Path, interval_ms: int) -> EpochReader:
    source = Source("s", "rows", FrozenOptions(rows=[]))
    coordinator = f"sqlite:{folder}/c.sqlite"
    settings = ReadSettings("t", str(folder), str(folder), coordinator, "run", (source,), 10, 1, interval_ms)
    return EpochReader(ReadSettings.from_json(settings.to_json()), "s")


def too_soon(one: EpochReader, clock: Clock, epoch: int, cut_at: float) -> bool:
    start = {"epoch": epoch, "time_ms": round(cut_at * 1000)}
    return one._is_too_soon(start, max(round(clock.time() * 1000), round(cut_at * 1000)))


def test_an_interval_lies_between_two_cuts(tmp_path: Path, clock: Clock) -> None:
    one = reader(tmp_path, 500)
    assert not too_soon(one, clock, 0, 0.0)
    assert too_soon(one, clock, 1, clock.wall)
    clock.pass_by(0.4)
    assert too_soon(one, clock, 1, clock.wall - 0.4)
    clock.pass_by(0.1)
    assert not too_soon(one, clock, 1, clock.wall - 0.5)


def test_a_reader_that_sees_an_epoch_late_does_not_wait_from_then_on(tmp_path: Path, clock: Clock) -> None:
    assert not too_soon(reader(tmp_path, 500), clock, 7, clock.wall - 3.0)


def test_a_clock_that_was_set_back_ten_minutes_holds_nobody_up(tmp_path: Path, clock: Clock) -> None:
    one = reader(tmp_path, 500)
    cut_at = clock.wall
    clock.wall -= 600
    assert too_soon(one, clock, 3, cut_at)
    clock.pass_by(0.5)
    assert not too_soon(one, clock, 3, cut_at)


def test_time_goes_on_where_the_clock_is_ten_minutes_behind(tmp_path: Path, clock: Clock) -> None:
    """It was set back, or the replica that cut the last epoch had one that was ahead, and is dead."""
    one = reader(tmp_path, 500)
    last = {"epoch": 3, "time_ms": 1_600_000}
    assert one._time_after(last) == 1_600_000
    clock.pass_by(100)
    assert one._time_after(last) == 1_690_000
    # The next epoch goes on from there; the clock comes nearer, and is right in the end.
    last = {"epoch": 4, "time_ms": 1_690_000}
    clock.pass_by(10)
    assert one._time_after(last) == 1_690_000
    clock.wall = 1_700
    assert one._time_after(last) == 1_700_000


def test_without_an_interval_nobody_waits(tmp_path: Path, clock: Clock) -> None:
    assert not too_soon(reader(tmp_path, 0), clock, 1, clock.wall)


def test_another_interval_is_taken_up_while_it_runs(tmp_path: Path, clock: Clock) -> None:
    one = reader(tmp_path, 500)
    orders = Orders(open_coordinator(f"sqlite:{tmp_path}/c.sqlite"))
    assert not too_soon(one, clock, 3, clock.wall - 1.0)
    orders.set_interval(2.0)
    clock.pass_by(0.3)
    assert too_soon(one, clock, 3, clock.wall - 1.0)
    orders.set_interval(None)
    clock.pass_by(0.3)
    assert not too_soon(one, clock, 3, clock.wall - 1.0)
