"""A tuple waits from when its pace says that it is due until its epoch is committed."""

from __future__ import annotations

import pytest

from penstock.bench.latency import Commit, latency_ms


def test_every_tuple_of_an_epoch_has_waited_since_it_was_due() -> None:
    # Ten tuples a second: due at 0, 100, …, 900 ms, and delivered together after a second.
    assert latency_ms([Commit(0, 10, 0.0, 1000.0)], rate=10) == pytest.approx([550.0, 955.0, 991.0])


def test_each_epoch_counts_by_its_tuples() -> None:
    commits = [Commit(0, 90, 1000.0, 10_000.0), Commit(90, 100, 1000.0, 10_910.0)]
    p50, _, _ = latency_ms(commits, rate=10)
    assert p50 == pytest.approx(4100.0, abs=100)


def test_the_beginning_can_be_left_out() -> None:
    slow_start = [Commit(0, 50, 0.0, 60_000.0), Commit(50, 100, 0.0, 9_950.0)]
    assert max(latency_ms(slow_start, rate=10, skipped=50)) < 5000


def test_nothing_gives_nothing() -> None:
    assert latency_ms([], rate=10) == []
    assert latency_ms([Commit(0, 5, 0.0, 1.0)], rate=10, skipped=5) == []
