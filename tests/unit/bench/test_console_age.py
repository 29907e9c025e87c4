"""How old a page is, and how soon commands take effect, from what was seen."""

from __future__ import annotations

from penstock.bench.console_age import Effect, frozen_after, worse, worst_age

REACHED = [(10.0, 1), (11.0, 2), (12.0, 3), (13.0, 4)]


def test_a_page_is_as_old_as_the_first_epoch_that_it_does_not_show() -> None:
    # Epoch 2 is shown 0.3 s late; then 3 is missed, and only 4 is shown, 1.5 s after 3 was done.
    assert worst_age(REACHED, [(10.1, 1), (11.3, 2), (13.5, 4), (13.6, 4)]) == 1.5


def test_a_page_that_is_told_the_same_again_grows_old() -> None:
    assert worst_age(REACHED, [(10.1, 1), (10.9, 1), (11.2, 1), (11.75, 2)]) == 0.75


def test_a_page_that_shows_the_newest_is_not_old() -> None:
    assert worst_age(REACHED, [(13.1, 4), (90.0, 4)]) == 0.0


def test_what_is_done_after_a_freeze_counts() -> None:
    assert frozen_after(REACHED, 11.5) == Effect(1.5, 2)
    assert frozen_after(REACHED, 13.0) == Effect(0.0, 0)
    assert worse(Effect(1.0, 2), Effect(2.0, 1)) == Effect(2.0, 2)
