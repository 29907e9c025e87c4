from __future__ import annotations

import pickle
from pathlib import Path

from penstock.spark.rounds import FOLDER, Rounds


def test_the_first_that_is_asked_answers_for_the_others(tmp_path: Path) -> None:
    first, second, third = (Rounds(tmp_path, "run") for _ in range(3))
    assert first.next() is None
    first.answer(7)
    assert (second.next(), third.next()) == (7, 7)


def test_each_round_has_its_own_answer(tmp_path: Path) -> None:
    first, second = (Rounds(tmp_path, "run") for _ in range(2))
    for epoch in (1, 1, 2, 30):
        assert first.next() is None
        first.answer(epoch)
        assert second.next() == epoch


def test_any_reader_may_be_the_first_of_a_round(tmp_path: Path) -> None:
    one, other = (Rounds(tmp_path, "run") for _ in range(2))
    assert one.next() is None
    one.answer(4)
    assert other.next() == 4
    assert other.next() is None
    other.answer(5)
    assert one.next() == 5


def test_an_earlier_run_answers_nothing(tmp_path: Path) -> None:
    before = Rounds(tmp_path, "before")
    before.next()
    before.answer(9)
    assert Rounds(tmp_path, "now").next() is None


def test_answers_do_not_pile_up(tmp_path: Path) -> None:
    first, second = (Rounds(tmp_path, "run") for _ in range(2))
    for epoch in range(50):
        first.next()
        first.answer(epoch)
        second.next()
    assert len(list((tmp_path / FOLDER).iterdir())) == 1


def test_a_reader_that_travels_to_another_process_stays_in_its_round(tmp_path: Path) -> None:
    first, second = (Rounds(tmp_path, "run") for _ in range(2))
    first.next()
    first.answer(1)
    second.next()
    moved: Rounds = pickle.loads(pickle.dumps(second))
    first.next()
    first.answer(2)
    assert moved.next() == 2
