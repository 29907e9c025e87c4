"""Failed tuples on their way to the driver, as files."""

from __future__ import annotations

import datetime
from pathlib import Path

from penstock.epochs.sequence import Anchor
from penstock.spark.failures import (
    Dropped,
    Failure,
    FailureLedger,
    collect_failures,
    forget_failures,
    is_settled,
    leave_out,
    left_out,
)

SEVENTH = Anchor(3, 0, 7).sequence


def noted(state: Path, operator: str = "own", task: int = 0, keep: bool = True) -> None:
    ledger = FailureLedger(state, operator, keep)
    ledger.note(SEVENTH, {"at": datetime.date(2026, 3, 1), "raw": b"\x00"}, "ValueError: no", "own.py:4")
    ledger.note(SEVENTH + 1, {"at": None, "raw": b""}, "ValueError: no", "own.py:4")
    ledger.close(task)


def test_the_driver_finds_what_failed_with_its_tuple_as_json(tmp_path: Path) -> None:
    noted(tmp_path)
    first, second = collect_failures(tmp_path, 3)
    assert first == Failure("own", SEVENTH, "ValueError: no", "own.py:4", {"at": "2026-03-01", "raw": "AA=="})
    assert isinstance(second, Failure)
    assert second.sequence == SEVENTH + 1


def test_a_task_that_runs_twice_reports_once(tmp_path: Path) -> None:
    noted(tmp_path)
    noted(tmp_path)
    noted(tmp_path, task=1)
    assert len(list(collect_failures(tmp_path, 3))) == 4


def test_nothing_is_seen_of_a_task_that_has_not_finished(tmp_path: Path) -> None:
    ledger = FailureLedger(tmp_path, "own", keep=True)
    ledger.note(SEVENTH, {}, "no", "")
    assert list(collect_failures(tmp_path, 3)) == []


def test_where_tuples_are_dropped_only_their_number_is_kept(tmp_path: Path) -> None:
    noted(tmp_path, keep=False)
    assert list(collect_failures(tmp_path, 3)) == [Dropped("own", 2)]


def test_a_task_without_failures_leaves_no_trace(tmp_path: Path) -> None:
    FailureLedger(tmp_path, "own", keep=True).close(0)
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_out_is_told_to_the_tasks_and_old_failures_are_forgotten(tmp_path: Path) -> None:
    noted(tmp_path)
    assert (left_out(tmp_path, 3), is_settled(tmp_path, 3)) == ([], False)
    leave_out(tmp_path, 3, [SEVENTH])
    assert (left_out(tmp_path, 3), is_settled(tmp_path, 3)) == ([SEVENTH], True)
    assert list(collect_failures(tmp_path, 3)) == []
    leave_out(tmp_path, 3, [])
    assert (left_out(tmp_path, 3), is_settled(tmp_path, 3)) == ([], True)
    forget_failures(tmp_path, 3)
    assert not is_settled(tmp_path, 3)
