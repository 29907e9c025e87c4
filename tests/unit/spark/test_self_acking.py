"""A bolt that acks by itself over one task's batches, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.epochs.sequence import Anchor
from penstock.plan.graph import UNACKED
from penstock.spark.acks import AckLedger, Delivery
from penstock.spark.custom import INSTANCE, CustomStage
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.failures import collect_failures, leave_out
from penstock.spark.faults import WorkerFault
from penstock.topology.model import Custom, StreamRef
from penstock.topology.on_error import parse_on_error
from penstock.topology.values import to_emits

EPOCH = 5
CODE = '''
import threading
import time

from penstock import Bolt

class Own(Bolt):
    auto_ack = False

class Forgets(Own):
    def process(self, tup):
        self.emit(tup.n)
        if tup.n != 3:
            self.ack(tup)

class Holds(Own):
    def process(self, tup):
        self.emit(tup.n)

class Raises(Own):
    def process(self, tup):
        self.emit(tup.n)
        self.ack(tup)
        if tup.n == 3:
            raise KeyError(tup.n)

class FailsLater(Own):
    def process(self, tup):
        if tup.n:
            before, word = self.before
            self.emit(before.n, anchor=before)
            self.fail(before, "odd") if before.n % 2 else self.ack(before)
        self.before = tup, "odd"

    def finish(self):
        self.ack(self.before[0])

class Threads(Own):
    def process(self, tup):
        threading.Thread(target=self.answer, args=(tup,)).start()

    def answer(self, tup):
        self.emit(tup.n, anchor=tup)
        self.ack(tup)

class NoAnchor(Own):
    held = None
    def process(self, tup):
        self.held = tup

    def finish(self):
        self.emit(self.held.n)

class InThread(Own):
    def process(self, tup):
        def answer():
            try:
                self.emit(tup.n)
            except ValueError as error:
                self.fail(tup, str(error))
        thread = threading.Thread(target=answer)
        thread.start()
        thread.join()

class Late(Own):
    """Answers what it was given in the task before, and nothing else, but in finish."""
    old = []
    def process(self, tup):
        for late in self.old:
            self.emit(-1, anchor=late)
            self.ack(late)

        self.old = [tup]

class SecondTime(Own):
    given = 0
    def process(self, tup):
        self.given += 1
        if tup.n != 3 or self.given > 5:
            self.emit(tup.n, anchor=tup)
            self.ack(tup)

class Misfit(Own):
    def process(self, tup):
        self.emit("three" if tup.n == 3 else tup.n)
        self.ack(tup)

class Ports(Own):
    def process(self, tup):
        self.emit(tup.n, port="even" if tup.n % 2 == 0 else "odd")
        if tup.n != 3:
            self.ack(tup)

class Hangs(Own):
    def process(self, tup):
        self.ack(tup)

    def finish(self):
        time.sleep(60)
'''


@pytest.fixture
def run(tmp_path: Path) -> Any:
    (tmp_path / "acking_code.py").write_text(CODE)

    def run_code(name: str, on_error: str = "dead-letter", parts: tuple[int, ...] = (5,), **options: Any) -> Any:
        """The numbers that went on, those not acked, and the failures; `parts` are the sizes of the batches."""
        timeout = options.pop("ack_timeout", 0.01)
        operator = Custom("own", (StreamRef("s"),), code=f"acking_code:{name}",
                          emits=to_emits(options.pop("emits", "n bigint")),
                          on_error=parse_on_error(on_error), **options)
        stage = CustomStage(f"{tmp_path}-{name}", operator, str(tmp_path), ("n",), str(tmp_path), timeout)
        batches, first = [], 0
        for size in parts:
            positions = range(first, first + size)
            sequences = pa.array([Anchor(EPOCH, 0, position).sequence for position in positions], pa.int64())
            batches.append(pa.RecordBatch.from_arrays(
                [pa.array(positions, pa.int64()), sequences, pa.array([0] * size)], names=["n", SEQUENCE, INSTANCE]))
            first += size
        rows = [row for part in stage(iter(batches)) for row in part.to_pylist()]
        unacked = [row for row in rows if row[UNACKED]]
        failures = [(item.tuple["n"], item.error) for item in collect_failures(tmp_path, EPOCH)]
        return [row for row in rows if not row[UNACKED]], unacked, failures

    return run_code


def gone_on(rows: list[Any]) -> list[int]:
    return sorted(row["default"]["n"] for row in rows)


def test_nothing_goes_on_of_a_tuple_that_is_not_acked(run: Any) -> None:
    rows, unacked, failures = run("Forgets")
    assert gone_on(rows) == [0, 1, 2, 4]
    (row,) = unacked
    assert (row[UNACKED]["operator"], row[UNACKED]["tuple"]) == ("own", '{"n": 3}')
    assert row[UNACKED]["ack"] != 0
    assert row[SEQUENCE] == Anchor(EPOCH, 0, 3).sequence
    assert failures == []


def test_what_is_not_acked_leaves_on_its_port_whatever_on_error_says(run: Any) -> None:
    for on_error in ("fail", "drop", "retry(3)"):
        rows, unacked, _ = run("Forgets", on_error)
        assert (len(rows), len(unacked)) == (4, 1)


def test_a_bolt_with_ports_keeps_them(run: Any) -> None:
    rows, unacked, _ = run("Ports", emits={"even": "n bigint", "odd": "n bigint"})
    assert sorted(row["even"]["n"] for row in rows if row["even"]) == [0, 2, 4]
    assert [row["odd"]["n"] for row in rows if row["odd"]] == [1]
    assert len(unacked) == 1


def test_a_tuple_for_which_it_raises_has_failed_even_after_its_ack(run: Any) -> None:
    rows, unacked, failures = run("Raises")
    assert gone_on(rows) == [0, 1, 2, 4]
    assert (unacked, failures) == ([], [(3, "KeyError: 3")])


def test_an_earlier_tuple_can_be_acked_and_failed_across_batches(run: Any) -> None:
    rows, unacked, failures = run("FailsLater", parts=(2, 3))
    assert gone_on(rows) == [0, 2]
    assert (unacked, failures) == ([], [(1, "odd"), (3, "odd")])


def test_threads_ack_and_emit(run: Any) -> None:
    rows, unacked, failures = run("Threads", parts=(50, 50), ack_timeout=60)
    assert gone_on(rows) == list(range(100))
    assert (unacked, failures) == ([], [])


def test_a_thread_must_say_for_which_tuple_it_emits(run: Any) -> None:
    _, _, failures = run("InThread", parts=(1,))
    assert failures == [(0, "emit outside of process does not say for which tuple: write emit(…, anchor=tup)")]


def test_what_is_open_fails_when_finish_raises(run: Any) -> None:
    rows, unacked, failures = run("NoAnchor", parts=(2,))
    assert (rows, unacked) == ([], [])
    assert [number for number, _ in failures] == [0, 1]
    assert "anchor=tup" in failures[0][1]


def test_finish_that_raises_ends_the_run_where_no_tuple_may_fail(run: Any) -> None:
    with pytest.raises(WorkerFault, match="in finish raised ValueError"):
        run("NoAnchor", "fail")


def test_an_ack_for_a_tuple_of_an_earlier_task_counts_for_nothing(run: Any) -> None:
    first, again = run("Late", parts=(1,)), run("Late", parts=(1,))
    for rows, unacked, _ in (first, again):
        assert (rows, len(unacked)) == ([], 1)


def test_a_tuple_acked_at_the_last_moment_is_not_lost(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ack comes when the time is over, while the task collects what is decided: the tuple counts as not acked."""
    deliver, collect = AckLedger.deliver, AckLedger.take_decided
    given: list[Any] = []

    def remember(ledger: AckLedger, sequences: Any, tuples: Any) -> Iterator[Delivery]:
        given.extend(tuples)
        return deliver(ledger, sequences, given)

    def collect_before_an_ack(ledger: AckLedger) -> list[Delivery]:
        decided = collect(ledger)
        if next(collections):
            ledger.ack(given[-1])
        return decided

    collections = iter([False, True])  # after the batch, and after `finish`
    monkeypatch.setattr(AckLedger, "deliver", remember)
    monkeypatch.setattr(AckLedger, "take_decided", collect_before_an_ack)
    rows, unacked, _ = run("Holds", parts=(1,))
    assert (rows, len(unacked)) == ([], 1)


def test_a_tuple_is_given_again_on_the_spot_once_it_is_settled_what_is_left_out(run: Any, tmp_path: Path) -> None:
    assert len(run("SecondTime", "retry(2)")[1]) == 1
    leave_out(tmp_path, EPOCH, [])
    rows, unacked, _ = run("SecondTime", "retry(2)")
    assert (gone_on(rows), unacked) == ([0, 1, 2, 3, 4], [])


def test_a_tuple_that_is_not_acked_on_the_spot_either_is_given_up(run: Any, tmp_path: Path) -> None:
    leave_out(tmp_path, EPOCH, [])
    rows, unacked, _ = run("Forgets", "retry(2)")
    assert (gone_on(rows), len(unacked)) == ([0, 1, 2, 4], 1)


def test_what_does_not_fit_fails_its_tuple(run: Any) -> None:
    rows, _, failures = run("Misfit")
    assert gone_on(rows) == [0, 1, 2, 4]
    assert failures[0][0] == 3
    with pytest.raises(WorkerFault, match="column 'n' is bigint"):
        run("Misfit", "fail")


def test_finish_may_not_hang(run: Any) -> None:
    with pytest.raises(WorkerFault, match="did not finish `finish` within"):
        run("Hangs", timeout=0.05)


def test_a_task_without_tuples_calls_nothing(run: Any) -> None:
    assert run("NoAnchor", parts=()) == ([], [], [])
