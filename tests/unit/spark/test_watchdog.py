from __future__ import annotations

import itertools
import signal
import threading

import pytest

from penstock.spark.watchdog import Hung, watch


def test_code_that_stands_still_is_interrupted() -> None:
    with pytest.raises(Hung), watch(0.05, lambda: 0):
        threading.Event().wait(10)


def test_code_that_moves_on_is_left_alone_however_long_it_takes() -> None:
    counter = itertools.count()
    with watch(0.02, lambda: next(counter)):
        threading.Event().wait(0.1)


def test_the_alarm_is_gone_afterwards() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with watch(0.02, lambda: 0):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_except_exception_does_not_swallow_it() -> None:
    def stubborn() -> None:
        try:
            threading.Event().wait(10)
        except Exception:
            pytest.fail("swallowed")

    with pytest.raises(Hung), watch(0.05, lambda: 0):
        stubborn()
