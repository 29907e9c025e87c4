from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.runtime.sink_match import SinkMatch, match_sinks


def of(last: int | None, agreed: Sequence[int] | None = (), name: str = "out") -> SinkMatch:
    """How one sink goes on from epoch 5."""
    return match_sinks(5, {name: last}, agreed, fresh=False)


@pytest.mark.parametrize("last", [5, None])
def test_a_sink_at_that_epoch_goes_on_as_does_one_that_cannot_tell(last: int | None) -> None:
    assert of(last) == SinkMatch()


def test_a_sink_without_output_begins_there() -> None:
    match = of(-1)
    assert (match.begin, match.refused) == (("out",), ())
    assert match.notes == ("sink 'out' has no output here: it begins with epoch 6",)


def test_a_sink_that_is_ahead_skips_what_is_done_again() -> None:
    match = of(7, agreed=[6, 7, 8])
    assert (match.begin, match.refused) == ((), ())
    assert match.notes == ("sink 'out' has come to epoch 7: what is done again up to there is skipped",)


@pytest.mark.parametrize("agreed", [None, (), [6], [7, 8]])
def test_unless_they_would_be_other_epochs(agreed: Sequence[int] | None) -> None:
    (said,) = of(7, agreed).refused
    assert said.startswith("sink 'out' has come to epoch 7, and the epoch log does not know the epochs after 5")


def test_a_sink_that_is_behind_would_have_a_gap() -> None:
    assert of(3).refused == ("sink 'out' has come only to epoch 3: those up to 5 would be missing",)


def test_not_every_epoch_has_dead_letters() -> None:
    assert of(3, name="dead-letters") == SinkMatch()


def test_a_log_of_another_history_is_forgotten() -> None:
    assert of(-1, agreed=None).forget
    assert not of(-1, agreed=[6]).forget


def test_fresh_sinks_all_begin_after_the_epoch() -> None:
    match = match_sinks(5, {"a": 9, "b": 2, "c": None}, None, fresh=True)
    assert (match.begin, match.forget, match.refused) == (("a", "b", "c"), True, ())
    assert match.notes == ("the output of 'a', 'b', 'c' is removed, and begins with epoch 6",)
