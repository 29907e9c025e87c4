from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.topology.model import (
    MAX_EPOCH_TUPLES,
    MAX_SOURCES,
    Command,
    Count,
    Custom,
    Dup,
    EpochSettings,
    FrozenOptions,
    Operator,
    Source,
    StreamRef,
    Topology,
)
from penstock.topology.schema import parse_schema
from penstock.validation.settings import check_settings

IN = (StreamRef("in"),)


def messages(*operators: Operator, **settings: Any) -> list[str]:
    return [problem.message for problem in check_settings(Topology("t", operators=operators, **settings))]


def test_the_defaults_are_possible() -> None:
    custom = Custom("c", IN, code="m:f", emits=(("", parse_schema("x int")),))
    assert messages(Dup("o", IN), Count("n", IN), custom) == []


@pytest.mark.parametrize("parallelism", [0, -1, "two", True, 1.5])
def test_parallelism_is_a_whole_number_of_at_least_one(parallelism: Any) -> None:
    assert messages(Dup("o", IN, parallelism=parallelism)) == [
        f"operator 'o': parallelism {parallelism} is impossible"]


def test_parallelism_has_a_bound() -> None:
    assert messages(Dup("o", IN, parallelism=4096)) == []
    assert messages(Dup("o", IN, parallelism=4097)) == ["operator 'o': parallelism 4097 is absurd"]


@pytest.mark.parametrize("interval", [-0.5, math.nan, math.inf, "soon"])
def test_the_epoch_interval_is_a_time(interval: Any) -> None:
    assert messages(epoch=EpochSettings(interval=interval)) == [f"epoch interval {interval} is impossible"]


def test_an_epoch_holds_at_least_one_tuple() -> None:
    assert messages(epoch=EpochSettings(max_tuples=0)) == ["epoch max_tuples 0 is impossible"]


@pytest.mark.parametrize("timeout", [0, -3.0])
def test_a_timeout_is_more_than_nothing(timeout: float) -> None:
    assert messages(Custom("o", IN, code="m:f", timeout=timeout)) == [
        f"operator 'o': timeout {timeout} is impossible"]


def test_unknown_choices_are_suggested() -> None:
    source = Source("in", "memory", FrozenOptions(), on_malformed="dead-leter")
    count = Count("o", IN, emit="change")
    assert messages(count, sources=(source,), delivery="exactly-onse", logging="x") == [
        "delivery 'exactly-onse' is not known: did you mean 'exactly-once'?",
        "logging 'x' is not known",
        "source 'in': on_malformed 'dead-leter' is not known: did you mean 'dead-letter'?",
        "operator 'o': emit 'change' is not known: did you mean 'changes'?"]


def test_commands_name_operators() -> None:
    commands = (Command("Start", ("OP1",)), Command("Status"), Command("Wait", ("100",)),
                Command("crash", ("tcp://1.2.3.4:11000/op",)), Command("Freeze", ("OP11", "1")),
                Command("Interval"))
    assert messages(Dup("OP1", IN), commands=commands) == [
        "command 'Freeze OP11 1': no operator 'OP11': did you mean 'OP1'?",
        "command 'Interval' names no operator"]


def test_a_tuple_can_be_numbered_in_every_epoch_and_source_that_is_allowed() -> None:
    assert messages(epoch=EpochSettings(max_tuples=MAX_EPOCH_TUPLES)) == []
    assert messages(epoch=EpochSettings(max_tuples=MAX_EPOCH_TUPLES + 1)) == [
        "epoch max_tuples 67,108,865 is too many for one epoch"]
    sources = tuple(Source(f"s{number}", "file", FrozenOptions(file="f")) for number in range(MAX_SOURCES + 1))
    assert messages(sources=sources[1:]) == []
    assert messages(sources=sources) == ["65 sources are too many"]
