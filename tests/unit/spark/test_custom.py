"""Custom code over one task's batches, without Spark: which tuples fail, and what becomes of their neighbours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.epochs.sequence import Anchor, anchor_of
from penstock.spark.custom import INSTANCE, CustomStage
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.failures import Dropped, Failure, collect_failures, leave_out
from penstock.spark.faults import WorkerFault
from penstock.topology.model import Custom, FrozenOptions, StreamRef
from penstock.topology.on_error import parse_on_error
from penstock.topology.values import to_emits

EPOCH = 5
CODE = '''
import sys

import pyarrow as pa

from penstock import Bolt, Fail

CALLS = []

def raises(tup):
    if tup.n % 10 == 3:
        raise KeyError(tup.n)
    return tup.n, "ok"

def fails(tup):
    if tup.n % 10 == 3:
        raise Fail("not today")
    return tup.n, "ok"

def exits(tup):
    if tup.n % 10 == 3:
        sys.exit(4)
    return tup.n, "ok"

def interrupted(tup):
    raise KeyboardInterrupt

def half_a_list(tup):
    yield tup.n, "first"
    if tup.n % 10 == 3:
        raise ValueError("in the middle")
    yield tup.n, "second"

def wrong_type(tup):
    return ("three" if tup.n % 10 == 3 else tup.n), "ok"

def wrong_shape(tup):
    return [(tup.n, "ok"), (tup.n,)] if tup.n % 10 == 3 else (tup.n, "ok")

class Emits(Bolt):
    def process(self, tup):
        self.emit(tup.n, "before")
        if tup.n % 10 == 3:
            self.fail(tup, "no")
        self.emit(tup.n, "after")

class FailsAnother(Bolt):
    def process(self, tup):
        self.fail((tup.n, "x"), "no")

def batch(rows: pa.RecordBatch):
    CALLS.append(rows.num_rows)
    if any(n % 10 == 3 for n in rows["n"].to_pylist()):
        raise ValueError("poison inside")
    return pa.RecordBatch.from_arrays([rows["n"], pa.array(["ok"] * rows.num_rows)], names=["n", "what"])

def batch_of_wrong_type(rows: pa.RecordBatch):
    return 7

def rolls(tup, context):
    return tup.n, str(context.random.random())

def rolls_later(tup, context):
    yield tup.n, str(context.random.random())

def mixed(tup):
    return [None, (tup.n, "one"), [(tup.n, "a"), (tup.n, "b")], {"n": tup.n, "what": "named"}][tup.n % 4]

SAME = []

def same_list(tup):
    SAME.clear()
    SAME.append((tup.n, "ok"))
    return SAME

def runs_out(tup):
    return tup.n, next(iter([] if tup.n % 10 == 3 else ["ok"]))

def of_column(n, what="ok", *, context):
    if n % 10 == 3:
        raise KeyError(n)
    return n, f"{what} {context.operator}"

def of_column_runs_out(n):
    return n, next(iter([] if n % 10 == 3 else ["ok"]))

def of_column_third_time(n):
    CALLS.append(n)
    if n == 3 and CALLS.count(3) < 3:
        raise TimeoutError("slow")
    return [(n, "one"), (n, "two")]

def word(n):
    return f"word {n}"

def some_words(n):
    return [f"{n}.{each}" for each in range(n % 3)]

def no_number(n):
    return "three" if n % 10 == 3 else n * 2

class Twice(Bolt):
    def process(self, tup):
        for each in range(tup.n % 3):
            self.emit(f"{tup.n}.{each}")

def third_time(tup):
    CALLS.append(tup.n)
    if tup.n == 3 and CALLS.count(3) < 3:
        raise TimeoutError("slow")
    return tup.n, "ok"
'''


@pytest.fixture
def run(tmp_path: Path) -> Any:
    (tmp_path / "runner_code.py").write_text(CODE)

    def run_code(name: str, on_error: str, count: int = 20, **options: Any) -> tuple[list[Any], list[Any]]:
        emits = options.pop("emits", "n bigint, what string")
        operator = Custom("own", (StreamRef("s"),), code=f"runner_code:{name}", emits=to_emits(emits),
                          on_error=parse_on_error(on_error), **options)
        stage = CustomStage(f"{tmp_path}-{name}", operator, str(tmp_path), ("n",), str(tmp_path), kept=operator.keep)
        numbers = pa.array(range(count), pa.int64())
        sequences = pa.array([Anchor(EPOCH, 0, number).sequence for number in range(count)], pa.int64())
        batch = pa.RecordBatch.from_arrays([numbers, sequences, pa.array([0] * count)], names=["n", SEQUENCE, INSTANCE])
        rows = [row for part in stage(iter([batch])) for row in part.to_pylist()]
        return rows, list(collect_failures(tmp_path, EPOCH))

    return run_code


GOOD = [number for number in range(20) if number % 10 != 3]


@pytest.mark.parametrize(("name", "error"), [
    ("raises", "KeyError: 3"),
    ("fails", "not today"),
    ("exits", "sys.exit(4)"),
    ("runs_out", "StopIteration"),
    ("of_column", "KeyError: 3"),
    ("of_column_runs_out", "StopIteration"),
    ("half_a_list", "ValueError: in the middle"),
    ("wrong_type", "emitted ('three', 'ok'), but column 'n' is bigint and 'three' is str"),
    ("wrong_shape", "emitted (3,), which does not fit: 1 values for 2 columns (n, what)"),
    ("Emits", "no"),
    ("batch", "ValueError: poison inside"),
])
def test_only_the_tuples_fail_that_the_code_fails_for(run: Any, name: str, error: str) -> None:
    rows, failures = run(name, "dead-letter")
    assert sorted({row["n"] for row in rows}) == GOOD
    assert all(anchor_of(row[SEQUENCE]).epoch == EPOCH for row in rows)
    assert [(failure.operator, failure.tuple, failure.sequence) for failure in failures] == [
        ("own", {"n": number}, Anchor(EPOCH, 0, number).sequence) for number in (3, 13)]
    assert failures[0].error.startswith(error)


@pytest.mark.parametrize("name", ["rolls", "rolls_later"])
def test_random_numbers_belong_to_the_tuple_and_not_to_its_place_in_a_batch(run: Any, name: str) -> None:
    rows, _ = run(name, "fail", count=4)
    drawn = [row["what"] for row in rows]
    assert len(set(drawn)) == 4
    assert [row["what"] for row in run(name, "fail", count=2)[0]] == drawn[:2]


def test_a_list_that_is_used_again_is_what_it_was_for_each_tuple(run: Any) -> None:
    assert [row["n"] for row in run("same_list", "fail", count=3)[0]] == [0, 1, 2]


def test_a_function_may_give_none_one_or_many_for_each_tuple(run: Any) -> None:
    rows, _ = run("mixed", "fail", count=6)
    assert [(row["n"], row["what"]) for row in rows] == [
        (1, "one"), (2, "a"), (2, "b"), (3, "named"), (5, "one")]
    assert [anchor_of(row[SEQUENCE]).position for row in rows] == [1, 2, 2, 3, 5]


def test_a_function_is_given_the_columns_that_its_parameters_are_named_after(run: Any) -> None:
    rows, _ = run("of_column", "fail", count=3)
    assert [(row["n"], row["what"]) for row in rows] == [(n, "ok own") for n in range(3)]
    rows, _ = run("of_column", "fail", count=3, arguments=FrozenOptions({"what": "fine"}))
    assert [row["what"] for row in rows] == ["fine own"] * 3


def test_a_function_of_columns_is_called_again_once_it_is_settled_what_is_left_out(run: Any, tmp_path: Path) -> None:
    leave_out(tmp_path, EPOCH, [])
    rows, failures = run("of_column_third_time", "retry(5)", count=5)
    assert failures == []
    assert [(row["n"], row["what"]) for row in rows] == [(n, what) for n in range(5) for what in ("one", "two")]


def test_a_failure_says_the_users_own_line(run: Any) -> None:
    _, failures = run("raises", "dead-letter")
    assert failures[0].at == f"runner_code.py:{1 + CODE.splitlines().index('        raise KeyError(tup.n)')}"


def test_all_or_nothing_of_what_a_bolt_emits_for_a_tuple_goes_on(run: Any) -> None:
    rows, _ = run("Emits", "drop")
    assert sorted((row["n"], row["what"]) for row in rows) == sorted(
        (number, what) for number in GOOD for what in ("before", "after"))


def test_dropped_tuples_are_counted(run: Any) -> None:
    assert run("raises", "drop")[1] == [Dropped("own", 2)]


@pytest.mark.parametrize("name", ["raises", "fails", "exits", "wrong_type", "wrong_shape", "Emits", "batch",
                                  "batch_of_wrong_type"])
def test_without_on_error_the_first_failure_ends_the_run(run: Any, name: str) -> None:
    with pytest.raises(WorkerFault, match="operator 'own'"):
        run(name, "fail")


def test_a_key_press_ends_the_run_whatever_on_error_says(run: Any) -> None:
    with pytest.raises(WorkerFault, match="KeyboardInterrupt"):
        run("interrupted", "drop")


def test_only_the_tuple_at_hand_can_be_failed(run: Any) -> None:
    _, failures = run("FailsAnother", "dead-letter", count=1)
    assert "only the tuple that process was given can be failed" in failures[0].error


def test_a_batch_function_is_called_no_more_often_than_halving_needs(run: Any) -> None:
    rows, failures = run("batch", "dead-letter", count=64)
    assert len(rows) == 57
    assert len(failures) == 7
    calls = sys.modules["runner_code"].CALLS
    assert calls[0] == 64
    assert len(calls) <= 7 * 2 * 7


def test_a_batch_function_that_never_works_fails_for_every_tuple(run: Any) -> None:
    rows, failures = run("batch_of_wrong_type", "dead-letter", count=8)
    assert rows == []
    assert len(failures) == 8
    assert isinstance(failures[0], Failure)
    assert failures[0].error.startswith("returned int")


def test_code_is_called_once_for_a_tuple_until_it_is_settled_what_is_left_out(run: Any, tmp_path: Path) -> None:
    _, failures = run("third_time", "retry(5)", count=5)
    assert [failure.tuple for failure in failures] == [{"n": 3}]
    leave_out(tmp_path, EPOCH, [])
    rows, failures = run("third_time", "retry(5)", count=5)
    assert failures == []
    assert len(rows) == 5


def test_nothing_of_a_tuple_goes_on_when_what_it_emits_on_one_port_does_not_fit(run: Any, tmp_path: Path) -> None:
    code = CODE + '''
class Ports(Bolt):
    def process(self, tup):
        self.emit(tup.n, port="numbers")
        self.emit("x" if tup.n != 3 else 3.5, port="texts")
'''
    (tmp_path / "runner_code.py").write_text(code)
    rows, failures = run("Ports", "dead-letter", count=5, emits={"numbers": "n bigint", "texts": "t string"})
    assert sorted(row["numbers"]["n"] for row in rows if row["numbers"]) == [0, 1, 2, 4]
    assert [failure.tuple for failure in failures] == [{"n": 3}]


SOME_WORDS = [{"n": number, "what": f"{number}.{each}"} for number in range(7) for each in range(number % 3)]


@pytest.mark.parametrize(("name", "rows"), [
    ("word", [{"n": number, "what": f"word {number}"} for number in range(7)]),
    ("some_words", SOME_WORDS),
    ("Twice", SOME_WORDS),
])
def test_columns_that_are_kept_stand_in_front_of_what_is_emitted_for_their_tuple(
    run: Any, name: str, rows: list[Any]
) -> None:
    found, _ = run(name, "fail", 7, emits="what string", keep=("n",))
    assert [{"n": row["n"], "what": row["what"]} for row in found] == rows
    assert [anchor_of(row[SEQUENCE]).position for row in found] == [row["n"] for row in found]


@pytest.mark.parametrize("keep", [(), ("n",)])
def test_a_single_value_is_a_tuple_of_the_only_column_and_one_that_does_not_fit_fails_alone(
    run: Any, keep: tuple[str, ...]
) -> None:
    rows, failures = run("no_number", "dead-letter", emits="twice bigint", keep=keep)
    assert [row["twice"] for row in rows] == [number * 2 for number in GOOD]
    assert [row.get("n") for row in rows] == [number if keep else None for number in GOOD]
    assert [failure.tuple for failure in failures] == [{"n": 3}, {"n": 13}]
    with pytest.raises(WorkerFault, match="emitted \\('three',\\), but column 'twice' is bigint"):
        run("no_number", "fail", emits="twice bigint", keep=keep)
