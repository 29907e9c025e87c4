"""Operators with a key, tried without Spark: state, timers, failures and what is emitted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Bolt, Context, Fail
from penstock.spark.emitted import Misfit
from penstock.testing import FailedTuple, KeyedHarness
from penstock.topology.state_encoding import NotPlain

EMITS = "user string, total double"


class Total(Bolt):
    """Adds up, and says the total at the end of a pause."""

    def initialize(self, pause: float = 10.0) -> None:
        self.pause = pause

    def process(self, tup: Any) -> None:
        total = self.context.state.value("total", 0.0)
        total.set(total.get() + tup.amount)
        if tup.amount < 0:
            self.emit("too", "many", "values")
        if tup.amount > 1000:
            raise ValueError("too much")
        if tup.amount == 13:
            self.fail(tup, "unlucky")
        self.context.timers.set(self.context.time + timedelta(seconds=self.pause), "pause")

    def on_timer(self, name: str) -> None:
        state = self.context.state.value("total", 0.0)
        if state.get() == 7:
            state.set(0.0)
            raise Fail("seven")
        self.emit(self.context.key, state.get())
        state.clear()


def pay(user: str | None, amount: float) -> dict[str, Any]:
    return {"user": user, "amount": amount}


def total(**options: Any) -> KeyedHarness:
    return KeyedHarness(Total, key="user", emits=EMITS, **options)


def running(tup: Any, context: Context) -> Iterator[tuple[str, float]]:
    total = context.state.value("total", 0.0)
    total.set(total.get() + tup.amount)
    yield tup.user, total.get()


def test_a_function_has_state_too() -> None:
    harness = KeyedHarness(running, key="user", emits=EMITS)
    harness.give(pay("a", 1), pay("b", 5), pay("a", 2))
    harness.give(pay("a", 3))
    assert [row for row in harness.emitted if row["user"] == "a"] == [
        {"user": "a", "total": 1.0},
        {"user": "a", "total": 3.0},
        {"user": "a", "total": 6.0},
    ]
    assert harness.state("b") == {"total": 5.0}


def test_a_timer_is_called_in_the_first_epoch_that_is_not_before_it() -> None:
    harness = total()
    harness.give(pay("a", 1))
    harness.advance(9.999)
    assert harness.emitted == []
    harness.advance(0.001)
    assert harness.emitted == [{"user": "a", "total": 1.0}]
    harness.advance(60)
    assert len(harness.emitted) == 1
    assert harness.keys == []


def test_a_timer_that_is_set_again_is_moved() -> None:
    harness = total()
    harness.give(pay("a", 1))
    harness.advance(6)
    harness.give(pay("a", 2))
    assert harness.timers("a") == {"pause": harness.time + timedelta(seconds=10)}
    harness.advance(5)
    assert harness.emitted == []
    harness.advance(5)
    assert harness.emitted == [{"user": "a", "total": 3.0}]


def test_arguments_reach_initialize_and_a_timer_may_be_moved_forward() -> None:
    harness = KeyedHarness(Total, key="user", emits=EMITS, with_={"pause": 3})
    harness.give(pay("a", 1))
    harness.advance(3)
    assert harness.emitted == [{"user": "a", "total": 1.0}]


def test_at_the_end_of_input_all_timers_are_called_once() -> None:
    harness = total()
    harness.give(pay("a", 1), pay("b", 2))
    harness.finish()
    harness.finish()
    assert sorted(row["user"] for row in harness.emitted) == ["a", "b"]


class SetsItself(Bolt):
    def process(self, tup: Any) -> None:
        self.context.timers.set(0, "now")

    def on_timer(self, name: str) -> None:
        self.emit(self.context.epoch)
        self.context.timers.set(0, "now")


def test_a_timer_that_sets_itself_is_called_once_an_epoch() -> None:
    harness = KeyedHarness(SetsItself, key="user", emits="epoch bigint")
    harness.give(pay("a", 1))
    harness.advance(0.001)
    harness.advance(0.001)
    assert [row["epoch"] for row in harness.emitted] == [1, 2, 3]
    harness.finish()
    assert [row["epoch"] for row in harness.emitted] == [1, 2, 3, 4]


class Cancels(Bolt):
    def process(self, tup: Any) -> None:
        self.context.timers.set(1, "first")
        self.context.timers.set(2, "second")

    def on_timer(self, name: str) -> None:
        self.emit(name)
        self.context.timers.cancel("second")


def test_a_timer_may_cancel_another_one_that_is_due() -> None:
    harness = KeyedHarness(Cancels, key="user", emits="name string")
    harness.give(pay("a", 1))
    harness.advance(5)
    assert harness.emitted == [{"name": "first"}]


def test_without_on_error_the_code_s_own_exception_is_raised() -> None:
    with pytest.raises(ValueError, match="too much"):
        total().give(pay("a", 5000))
    with pytest.raises(Fail, match="unlucky"):
        total().give(pay("a", 13))


@pytest.mark.parametrize(
    ("amount", "error"), [(5000.0, "ValueError: too much"), (13.0, "unlucky"), (-1.0, "3 values for 2 columns")]
)
def test_what_a_tuple_that_fails_has_changed_is_undone(amount: float, error: str) -> None:
    harness = total(on_error="dead-letter")
    harness.give(pay("a", 1), pay("a", amount), pay("a", 2), pay("b", 4))
    assert [failed.tuple for failed in harness.failed] == [pay("a", amount)]
    assert error in harness.failed[0].error
    assert (harness.state("a"), harness.state("b")) == ({"total": 3.0}, {"total": 4.0})


def test_a_key_whose_only_tuple_failed_is_not_remembered() -> None:
    harness = total(on_error="drop")
    harness.give(pay("a", 5000))
    assert harness.keys == []


def test_a_timer_that_fails_is_told_with_its_key_and_what_it_changed_is_undone() -> None:
    harness = total(on_error="dead-letter")
    harness.give(pay("a", 7))
    harness.advance(10)
    assert harness.failed == [FailedTuple({"user": "a", "timer": "pause"}, "seven")]
    assert harness.state("a") == {"total": 7.0}
    assert harness.timers("a") == {}


class Recent(Bolt):
    def process(self, tup: Any) -> None:
        recent = self.context.state.list("recent", ttl=timedelta(minutes=1))
        recent.append(tup.amount)
        self.emit(tup.user, sum(recent))


def test_state_of_a_key_that_never_comes_again_goes_when_its_time_is_over() -> None:
    harness = KeyedHarness(Recent, key="user", emits=EMITS)
    harness.give(pay("a", 1), pay("b", 2))
    harness.advance(30)
    harness.give(pay("a", 10))
    assert harness.emitted[-1] == {"user": "a", "total": 11.0}
    harness.advance(30)
    assert harness.keys == ["a"]
    assert harness.state("a") == {"recent": [10.0]}
    harness.advance(30)
    assert harness.keys == []


def test_null_is_a_key_like_any_other() -> None:
    harness = total()
    harness.give(pay(None, 1), pay("a", 2), pay(None, 3))
    harness.finish()
    assert sorted(harness.emitted, key=lambda row: row["total"]) == [
        {"user": "a", "total": 2.0},
        {"user": None, "total": 4.0},
    ]


class ByDay(Bolt):
    def process(self, tup: Any) -> None:
        assert self.context.key == (tup.user, tup.at)
        self.context.timers.set(1)

    def on_timer(self, name: str) -> None:
        user, at = self.context.key
        self.emit(f"{user} {at:%Y-%m-%d %H:%M}")


def test_a_key_of_several_columns_is_a_tuple_of_their_own_values() -> None:
    harness = KeyedHarness(ByDay, key=["user", "at"], emits="who string")
    moment = datetime(2024, 5, 1, 8, 30, tzinfo=UTC)
    harness.give({"user": "a", "at": moment})
    assert harness.keys == [("a", moment)]
    harness.finish()
    assert harness.emitted == [{"who": "a 2024-05-01 08:30"}]


class TwoPorts(Bolt):
    def process(self, tup: Any) -> None:
        self.emit(tup.amount, port="large" if tup.amount > 10 else "small")


def test_what_is_emitted_is_shown_by_port() -> None:
    harness = KeyedHarness(TwoPorts, key="user", emits={"small": "amount double", "large": "amount double"})
    harness.give(pay("a", 1), pay("a", 11))
    assert harness.emitted_on("large") == [{"amount": 11.0}]
    with pytest.raises(ValueError, match="several ports"):
        _ = harness.emitted


class Dice(Bolt):
    def process(self, tup: Any) -> None:
        self.emit(tup.user, self.context.random.random())


def test_random_numbers_are_the_same_in_every_replay_and_differ_by_key_and_epoch() -> None:
    def rolled() -> list[float]:
        harness = KeyedHarness(Dice, key="user", emits=EMITS)
        harness.give(pay("a", 1), pay("a", 1), pay("b", 1))
        harness.give(pay("a", 1))
        return [row["total"] for row in harness.emitted]

    first = rolled()
    assert len(set(first)) == 4
    assert rolled() == first


class KeepsObjects(Bolt):
    def process(self, tup: Any) -> None:
        kept = self.context.state.value("kept", [])
        kept.set([])
        kept.get().append(object())


def test_an_object_that_slipped_into_the_state_is_told_with_its_key() -> None:
    with pytest.raises(NotPlain, match="plain values only"):
        KeyedHarness(KeepsObjects, key="user", emits=EMITS).give(pay("a", 1))


def test_state_is_not_there_outside_of_a_call() -> None:
    class Eager(Bolt):
        def initialize(self) -> None:
            self.context.state.value("x")

        def process(self, tup: Any) -> None: ...

    with pytest.raises(RuntimeError, match="key"):
        KeyedHarness(Eager, key="user", emits=EMITS)


def test_an_emitted_tuple_that_does_not_fit_ends_a_run_that_tolerates_nothing() -> None:
    with pytest.raises(Misfit, match="3 values for 2 columns"):
        total().give(pay("a", -1))
