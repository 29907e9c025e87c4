"""Whether a failure of a replica could be noticed."""

from __future__ import annotations

from penstock.chaos.gaps import gap_report

DELIVERED = [(0.0, 1), (9.0, 2), (10.0, 3), (11.0, 4), (12.2, 5), (13.1, 6), (15.2, 8), (16.0, 9)]


def test_gaps_around_a_blow_are_told_apart_from_the_others() -> None:
    found = gap_report(DELIVERED, [(12.5, 14.0)], 9.5, 1.0)
    assert (round(found.quiet, 2), round(found.struck, 2), found.struck_after) == (1.2, 2.1, 6)
    assert found.slowest_recovery == 1.5
    assert found.hidden
    assert "2.10 s, after epoch 6" in str(found)
    assert "nobody could notice" in str(found)


def test_a_gap_that_is_longer_than_the_others_and_an_interval_is_noticed() -> None:
    found = gap_report(DELIVERED, [(12.5, 14.0)], 9.5, 0.5)
    assert not found.hidden
    assert "LONGER THAN THE GOAL" in str(found)


def test_what_was_before_all_replicas_were_safe_does_not_count() -> None:
    assert gap_report(DELIVERED, [], 9.5, 1.0).quiet < 9
    assert gap_report(DELIVERED, [], 0.0, 1.0).quiet == 9.0


def test_without_epochs_there_are_no_gaps() -> None:
    assert gap_report([], [], 0.0, 1.0).hidden
