"""How old a page is, and how soon commands take effect, from what was seen."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.console import leading
from penstock.bench.console_age import Effect, Reached, frozen_after, worse, worst_age
from penstock.console.client import Client
from penstock.errors import ConsoleError, DeliveryError
from penstock.runtime.state_folder import StateFolder

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


def test_one_that_does_not_freeze_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    # An epoch that is never older than two intervals, whenever one looks.
    reached = Reached(StateFolder(tmp_path), [(time.time() + 3600.0, 7)])
    with pytest.raises(DeliveryError, match=r"told to freeze, and still does epochs 0\.05 s later: the last is 7"):
        reached.await_stillness(0.05)
    reached.moments.append((time.time() - 3600.0, 8))
    reached.await_stillness(0.05)


class Told(Client):
    """A master that says one thing after the other, and then the last again."""

    answers: list[bool | None]

    def get(self, path: str, **query: Any) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ConsoleError("no console answers")
        return {"leading": answer}


def masters(*answers: list[bool | None]) -> list[Client]:
    made = [Told() for _ in answers]
    for each, told in zip(made, answers, strict=True):
        object.__setattr__(each, "answers", told)
    return list(made)


def test_nothing_is_measured_before_one_master_leads() -> None:
    assert leading(masters([False], [True])) == 1
    # One that is about to hand over, and one that does not answer yet.
    assert leading(masters([True, False], [True, None, False, True])) == 1
    with pytest.raises(DeliveryError, match=r"not one of the masters led within 0\.2 s"):
        leading(masters([False], [None]), 0.2)
