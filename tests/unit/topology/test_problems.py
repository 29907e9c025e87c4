from __future__ import annotations

from penstock.topology.model import Location
from penstock.topology.problems import Problem, suggest


def test_a_problem_reads_as_file_line_message_and_hint() -> None:
    assert str(Problem(Location("t.yaml", 3), "no stream 'twets'", "did you mean 'tweets'?")) \
        == "t.yaml:3: no stream 'twets' (did you mean 'tweets'?)"


def test_a_problem_without_place_or_hint_is_its_message() -> None:
    assert str(Problem(Location(), "nothing to run")) == "nothing to run"


def test_the_nearest_name_is_suggested_whatever_its_case() -> None:
    assert suggest("twets", ["users", "tweets"]) == "did you mean 'tweets'?"
    assert suggest("op1", ["OP1"]) == "did you mean 'OP1'?"


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert suggest("twets", ["users", "count"]) == ""
