from __future__ import annotations

from pathlib import Path

from penstock.spark.signals import Held, Signals


def test_a_wish_to_stop_reaches_every_reader_of_the_run(tmp_path: Path) -> None:
    driver, reader = Signals(tmp_path, "run"), Signals(tmp_path, "run")
    assert not reader.stop_wanted()
    driver.want_stop()
    assert reader.stop_wanted()


def test_a_wish_to_stop_is_not_for_the_next_run(tmp_path: Path) -> None:
    Signals(tmp_path, "one").want_stop()
    assert not Signals(tmp_path, "other").stop_wanted()


def test_the_driver_hears_why_no_epoch_can_be_cut_until_it_can(tmp_path: Path) -> None:
    driver, reader = Signals(tmp_path, "run"), Signals(tmp_path, "run")
    assert driver.why_away() is None
    reader.coordinator_away("nobody answers at 127.0.0.1:2181")
    reader.coordinator_away("nobody answers at 127.0.0.1:2181")
    assert driver.why_away() == "nobody answers at 127.0.0.1:2181"
    reader.coordinator_back()
    assert driver.why_away() is None
    reader.coordinator_away("gone again")
    assert driver.why_away() == "gone again"


def test_while_all_is_well_nothing_is_written(tmp_path: Path) -> None:
    Signals(tmp_path, "run").coordinator_back()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_ends_leaves_nothing_and_takes_nothing_of_anothers(tmp_path: Path) -> None:
    run, other = Signals(tmp_path, "run"), Signals(tmp_path, "other")
    for signals in (run, other):
        signals.want_stop()
        signals.coordinator_away("gone")
    run.clear()
    run.clear()
    assert (run.stop_wanted(), run.why_away()) == (False, None)
    assert (other.stop_wanted(), other.why_away()) == (True, "gone")


def test_a_reader_hears_how_its_run_is_held_and_tells_what_it_received_meanwhile(tmp_path: Path) -> None:
    driver, reader = Signals(tmp_path, "run"), Signals(tmp_path, "run")
    assert (reader.held(), driver.received()) == (Held.NOT, 0)
    driver.hold(Held.RECEIVING)
    assert reader.held() is Held.RECEIVING
    reader.note_received(3)
    assert driver.received() == 3
    driver.hold(Held.STILL)
    assert (reader.held(), driver.received()) == (Held.STILL, 0)
    driver.hold(Held.NOT)
    assert (reader.held(), driver.received()) == (Held.NOT, 0)
    driver.hold(Held.NOT)
    assert list(tmp_path.iterdir()) == []
