from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from peers_jobs.work import LETTERS, word
from side_by_side.answers import (
    Answer,
    answer_of,
    check_counts,
    check_numbers,
    check_totals,
    columns_of,
    counted_row,
    counted_rows,
    last_counts,
    repeated_rows,
    visible_files,
    words_due,
)


def test_all_numbers_once_are_right() -> None:
    assert check_numbers(np.array([2, 0, 1]), 3).right


def test_numbers_that_are_missing_twice_there_or_foreign_are_told_apart() -> None:
    answer = check_numbers(np.array([0, 1, 1, 1, 7]), 3)

    assert answer == Answer(lost=1, doubled=2, wrong=1)
    assert str(answer) == "1 lost, 2 doubled, 1 wrong"


def test_a_total_is_right_when_it_is_that_of_its_number() -> None:
    numbers = np.array([0, 1, 12_345])
    totals = np.array([0, 7919 * 100 + 1, 12_345 * 7919 % 10_000 * 100 + 45])

    assert check_totals(numbers, totals, 3).wrong == 1, "12,345 is no number of theirs"
    assert check_totals(numbers[:2], totals[:2], 2).right
    assert check_totals(numbers[:2], totals[:2] + 1, 2) == Answer(wrong=2)


def test_counts_that_are_too_small_have_lost_tuples_and_those_too_large_have_doubled_some() -> None:
    found = {("a",): 9, ("b",): 13, ("z",): 1}

    assert check_counts(found, {("a",): 10, ("b",): 10, ("c",): 5}) == Answer(lost=6, doubled=3, wrong=1)


@pytest.mark.parametrize("tuples", [1, 25, 26, 27, 1000])
def test_the_words_that_are_due_are_those_of_the_numbers(tuples: int) -> None:
    words = [(word(number),) for number in range(tuples)]

    assert words_due(tuples) == {each: words.count(each) for each in set(words)}


def test_every_letter_is_a_word() -> None:
    assert {word(number) for number in range(26)} == {letter * 256 for letter in LETTERS}


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("user1,BUY,12", (("user1", "BUY"), 12)),
        ('"aaa",7', (("aaa",), 7)),
        ("+I[aaa, 7]", (("aaa",), 7)),
        ("+U[user1, BUY, 12]", (("user1", "BUY"), 12)),
        ("-U[user1, BUY, 11]", None),
        ("-D[aaa, 7]", None),
        ('{"word":"aaa","count":7,"diff":1,"time":12}', (("aaa",), 7)),
        ('{"user":"u","kind":"BUY","count":7,"diff":-1,"time":12}', None),
    ],
)
def test_a_count_is_read_from_whatever_form_it_was_written_in(
    line: str, row: tuple[tuple[str, ...], int] | None
) -> None:
    assert counted_row(line) == row


def test_the_last_count_of_a_key_is_its_largest() -> None:
    assert last_counts([(("a",), 3), (("b",), 1), (("a",), 5)]) == {("a",): 5, ("b",): 1}


def test_a_row_that_is_there_three_times_is_repeated_twice() -> None:
    assert repeated_rows([(("a",), 3), (("a",), 3), (("a",), 4), (("a",), 3)]) == 2


def test_hidden_files_and_notes_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "2026").mkdir()
    for name in (".part-0.inprogress", "_SUCCESS", "_spark_metadata/0", "2026/part-0", "rows.csv"):
        (tmp_path / name).write_text("1\n")

    assert [path.name for path in visible_files(tmp_path)] == ["part-0", "rows.csv"]


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("a,1\nb,2\nc,")

    assert list(counted_rows(tmp_path)) == [(("a",), 1), (("b",), 2)]


def test_columns_are_read_with_and_without_names_and_what_follows_them_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("1,10\n2,20\n")
    (tmp_path / "two.csv").write_text("number,total,time,diff\n3,30,99,1\n")
    (tmp_path / "empty.csv").write_text("")

    numbers, totals = columns_of(tmp_path, 2)

    assert (numbers.tolist(), totals.tolist()) == ([1, 2, 3], [10, 20, 30])


def test_a_job_that_wrote_nothing_has_lost_everything(tmp_path: Path) -> None:
    assert answer_of("stateless", tmp_path, 5, {}) == Answer(lost=5)
    assert answer_of("function", tmp_path, 5, {}) == Answer(lost=5)
    assert answer_of("word-count", tmp_path, 5, {}) == Answer(lost=5)
    assert answer_of("json", tmp_path, 5, {("u", "BUY"): 5}) == Answer(lost=5)
