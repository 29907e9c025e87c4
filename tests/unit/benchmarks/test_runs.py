from __future__ import annotations

import sys
from pathlib import Path

import pytest
from peers_jobs.work import Work
from side_by_side import runs
from side_by_side.contestants import Contestant
from side_by_side.runs import Ran, reported_seconds, run_once, telling_line
from side_by_side.telling import Telling

PEER = Contestant("peer", "Peer 1.0")


def test_the_reason_of_a_failure_is_the_cause_and_not_where_in_the_code() -> None:
    said = "WARN of something\nTraceback (most recent call last):\n  File x\nValueError: no such table\n\tat Foo.java\n"

    assert telling_line(said) == "ValueError: no such table"
    assert telling_line("") == "it said nothing"


@pytest.mark.parametrize("line", ["", "done", "[1]", '{"rows": 3}'])
def test_a_line_without_a_time_tells_none(line: str) -> None:
    assert reported_seconds(line) is None
    assert reported_seconds('{"seconds": 2}') == 2.0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Work:
    monkeypatch.setattr(runs, "PROGRAMS", tmp_path)
    monkeypatch.setattr(runs, "_LOOK_SECONDS", 0.02)
    made = Work("stateless", 2, tmp_path / "run")
    made.out.mkdir(parents=True)
    return made


def ran(work: Work, program: str) -> Ran:
    (runs.PROGRAMS / PEER.program).write_text(program)
    return run_once(PEER, Path(sys.executable), work, {}, Telling())


def test_a_right_result_has_its_seconds(work: Work) -> None:
    (work.out / "rows.csv").write_text("1\n0\n")

    assert ran(work, "print('{\"seconds\": 1.5}')") == Ran(1.5)


def test_a_wrong_result_is_told_as_such(work: Work) -> None:
    (work.out / "rows.csv").write_text("1\n1\n")

    assert ran(work, "print('{\"seconds\": 1.5}')") == Ran(1.5, "wrong result: 1 lost, 1 doubled")


def test_a_result_that_cannot_be_read_does_not_stop_the_others(work: Work) -> None:
    (work.out / "rows.csv").write_text("0\nnonsense\n")

    trouble = ran(work, "print('{\"seconds\": 1.5}')").trouble
    assert trouble is not None
    assert trouble.startswith("its result cannot be read")


def test_a_program_that_ends_without_its_time_has_failed(work: Work) -> None:
    trouble = ran(work, "print('bye')").trouble

    assert trouble == "it ended without its time: exit code 0: bye"


def test_a_program_that_fails_is_told_with_its_reason(work: Work) -> None:
    assert ran(work, "raise ValueError('no such table')").trouble == "exit code 1: ValueError: no such table"
