from __future__ import annotations

from penstock.replication.warmth import Warmth

INTERVAL = 2.5


class Started:
    """A replica that does an epoch every interval."""

    def __init__(self) -> None:
        self.warmth = Warmth(INTERVAL)
        self._now, self._epoch = 1000.0, 100
        self._wholes: list[float] = []

    def does(self, *wholes: float, abreast: bool | None = True) -> bool:
        """Whether it is warm after epochs that took it so long."""
        for whole in wholes:
            self._now, self._epoch = self._now + INTERVAL, self._epoch + 1
            self._wholes.append(whole)
            self.warmth.look(self._now, self._epoch, abreast, self._wholes[-4:])
        return not self.warmth.is_cold


def test_one_quick_epoch_is_not_enough() -> None:
    started = Started()
    assert not started.does(20.0, 1.0)
    assert not started.does(3.0, 1.0, 1.0, 1.0)
    assert started.does(1.0)
    # Once warm, it stays so: what is slow now is slow for everybody.
    assert started.does(9.0)


def test_what_was_done_to_catch_up_does_not_count() -> None:
    started = Started()
    assert not started.does(*[0.2] * 12, abreast=False)
    # Of all that it did between two looks, only what comes from now on.
    assert not started.does(0.2, 0.2, 0.2, 0.2)
    assert started.does(0.2)


def test_one_that_falls_behind_again_begins_anew() -> None:
    started = Started()
    assert not started.does(0.2, 0.2, 0.2)
    assert not started.does(0.2, abreast=False)
    assert not started.does(0.2, 0.2, 0.2, 0.2)
    # That nobody could tell for a moment is no falling behind.
    assert started.does(0.2, abreast=None)


def test_one_that_is_always_slow_is_not_starting_forever() -> None:
    started = Started()
    assert not started.does(*[3.0] * 24)
    assert started.does(3.0, 3.0)


def test_one_that_has_done_nothing_yet_is_cold() -> None:
    warmth = Warmth(INTERVAL)
    warmth.look(0.0, 0, True, [])
    warmth.look(500.0, 0, True, [])
    assert warmth.is_cold
