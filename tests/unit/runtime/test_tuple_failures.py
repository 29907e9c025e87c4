"""How an epoch whose tuples may fail is settled: how often its job runs, without what, and what is agreed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.connectors.base import Staged
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.postponed import Postponed
from penstock.epochs.record import EpochRecord
from penstock.epochs.sequence import Anchor
from penstock.errors import DeliveryError, OperatorError
from penstock.runtime.tuple_failures import MAX_ROUNDS, TupleFailures
from penstock.spark.epoch_job import StagedBySink
from penstock.spark.failures import FailureLedger, left_out
from penstock.topology.model import Topology


class Job:
    """An epoch's job over ten tuples of one source: `fails` says for which the operator fails, in which run."""

    def __init__(self, state: Path, epoch: int, fails: Callable[[int, int], bool], replayed: int = 0) -> None:
        self.state, self.epoch, self.fails = state, epoch, fails
        self.replayed = replayed
        self.without: list[list[int]] = []
        self.thrown_away: list[StagedBySink | None] = []

    def __call__(self, before: StagedBySink | None) -> StagedBySink:
        self.thrown_away.append(before)
        gone = left_out(self.state, self.epoch)
        anchors = [Anchor(self.epoch, 0, position) for position in range(10)]
        anchors += [Anchor(self.epoch, 0, number, replayed=True) for number in range(self.replayed)]
        self.without.append([anchor.position for anchor in anchors if anchor.sequence in gone])
        ledger = FailureLedger(self.state, "own", keep=True)
        present = [anchor for anchor in anchors if anchor.sequence not in gone]
        for anchor in present:
            if self.fails(len(self.without), anchor.position + 100 * anchor.replayed):
                ledger.note(anchor.sequence, {"n": anchor.position}, "ValueError: no", "own.py:3")
        ledger.close(0)
        return [[Staged(len(present))]]


def settling(state: Path, on_error: str, log: EpochLog | None = None) -> TupleFailures:
    stream = Topology("t").source("s", rows=[], schema="n bigint")
    topology = stream.custom("own:code", emits="n bigint", on_error=on_error, name="own").sink("o", memory=True)
    return TupleFailures(topology, state, log or EpochLog(MemoryCoordinator()), {"s": {"row": 0}}, 2)


def record(epoch: int) -> EpochRecord:
    return EpochRecord(epoch, 0, {"s": {"row": 10 * epoch}}, {"s": 10})


def test_what_is_to_be_buried_needs_one_run(tmp_path: Path) -> None:
    failures = settling(tmp_path, "dead-letter")
    job = Job(tmp_path, 4, lambda run, n: n == 7)
    settled = failures.settle(record(4), job)
    assert job.without == [[]]
    assert (settled.failed, settled.postponed) == ({"own": 1}, 0)
    (letter,) = failures.letters(4)
    assert letter == {"epoch": 4, "operator": "own", "error": "ValueError: no", "at": "own.py:3", "tuple": {"n": 7},
                      "attempts": 1, "source": "s", "read_in_epoch": 4, "position": 7,
                      "span": [{"row": 0}, {"row": 40}, 2]}
    failures.committed(4)
    assert list(failures.letters(4)) == []


def test_where_nothing_may_fail_nothing_is_looked_at(tmp_path: Path) -> None:
    failures = settling(tmp_path, "fail")
    assert failures.settle(record(1), lambda before: [[Staged(3)]]).staged == [[Staged(3)]]
    assert list(tmp_path.iterdir()) == []


def test_an_epoch_runs_again_without_what_is_to_be_replayed(tmp_path: Path) -> None:
    log = EpochLog(MemoryCoordinator())
    failures = settling(tmp_path, "retry(2)", log)
    log.propose(record(3))
    job = Job(tmp_path, 4, lambda run, n: n in (2, 7))
    settled = failures.settle(record(4), job)
    assert job.without == [[], [2, 7]]
    assert job.thrown_away == [None, [[Staged(10)]]]
    assert settled.staged == [[Staged(8)]]
    assert (settled.failed, settled.postponed) == ({}, 2)
    agreed = log.postponed(4)
    assert agreed is not None
    assert [late.attempts for late in agreed.tuples] == [1, 1]
    span = agreed.spans[0, 4]
    assert (span.begin, span.end, span.slices) == ({"row": 30}, {"row": 40}, 2)


def test_that_nothing_failed_is_agreed_too(tmp_path: Path) -> None:
    """A crash while the sinks are committed must not make the next run decide otherwise."""
    log = EpochLog(MemoryCoordinator())
    settling(tmp_path, "retry(2)", log).settle(record(4), Job(tmp_path, 4, lambda run, n: False))
    assert log.postponed(4) == Postponed(4)


def test_what_fails_only_then_is_left_out_too(tmp_path: Path) -> None:
    job = Job(tmp_path, 1, lambda run, n: n == 2 or (n == 5 and run > 1))
    settled = settling(tmp_path, "retry(2)").settle(record(1), job)
    assert job.without == [[], [2], [2, 5]]
    assert settled.postponed == 2


def test_what_is_agreed_already_is_left_out_at_once(tmp_path: Path) -> None:
    log = EpochLog(MemoryCoordinator())
    settling(tmp_path / "a", "retry(2)", log).settle(record(1), Job(tmp_path / "a", 1, lambda run, n: n == 2))
    job = Job(tmp_path / "b", 1, lambda run, n: n == 2)
    settled = settling(tmp_path / "b", "retry(2)", log).settle(record(1), job)
    assert job.without == [[2]]
    assert settled.postponed == 1


def test_another_replica_that_was_first_is_followed(tmp_path: Path) -> None:
    log = EpochLog(MemoryCoordinator())
    other = Job(tmp_path / "b", 1, lambda run, n: n == 2)

    def beaten(run: int, n: int) -> bool:
        if run == 2 and n == 0:  # while we run the second time, the other replica settles the epoch
            settling(tmp_path / "b", "retry(2)", log).settle(record(1), other)
        return n == 7 and run < 3

    job = Job(tmp_path / "a", 1, beaten)
    settled = settling(tmp_path / "a", "retry(2)", log).settle(record(1), job)
    assert job.without == [[], [7], [2]]
    assert settled.postponed == 1


def test_a_tuple_is_buried_when_it_has_been_replayed_often_enough(tmp_path: Path) -> None:
    log = EpochLog(MemoryCoordinator())
    failures = settling(tmp_path, "retry(2)", log)
    always: Callable[[int, int], bool] = lambda run, n: n in (7, 100)  # noqa: E731
    failures.settle(record(1), Job(tmp_path, 1, always))
    failures.settle(record(2), Job(tmp_path, 2, lambda run, n: n == 100, replayed=1))
    second = log.postponed(2)
    assert second is not None
    assert [(late.origin.epoch, late.origin.position, late.attempts) for late in second.tuples] == [(1, 7, 2)]
    assert failures.settle(record(3), Job(tmp_path, 3, lambda run, n: False)).failed == {}
    settled = failures.settle(record(4), Job(tmp_path, 4, lambda run, n: n == 100, replayed=1))
    assert (settled.failed, settled.postponed) == ({"own": 1}, 0)
    (letter,) = failures.letters(4)
    assert (letter["attempts"], letter["read_in_epoch"], letter["position"]) == (3, 1, 7)


def test_code_that_fails_for_others_each_time_is_given_up(tmp_path: Path) -> None:
    job = Job(tmp_path, 1, lambda run, n: n == run)
    with pytest.raises(DeliveryError, match=f"was run {MAX_ROUNDS} times") as caught:
        settling(tmp_path, "retry(2)").settle(record(1), job)
    assert len(job.without) == MAX_ROUNDS
    assert "operator 'own': ValueError: no" in str(caught.value)


def test_a_tuple_that_is_not_acked_ends_the_run_where_none_may_fail(tmp_path: Path) -> None:
    failures = settling(tmp_path, "fail")
    failures.topology = replace(failures.topology, acking=True)
    job = Job(tmp_path, 4, lambda run, n: n == 7)
    with pytest.raises(OperatorError, match="operator 'own'") as caught:
        failures.settle(record(4), job)
    said = str(caught.value)
    assert "test_tuple_failures.py:" in said
    assert "a tuple was ValueError: no" in said
    assert '{"n": 7}' in said


def test_what_an_earlier_run_left_of_the_epoch_does_not_end_this_one(tmp_path: Path) -> None:
    failures = settling(tmp_path, "fail")
    failures.topology = replace(failures.topology, acking=True)
    Job(tmp_path, 4, lambda run, n: n == 7)(None)
    assert failures.settle(record(4), Job(tmp_path, 4, lambda run, n: False)).failed == {}
