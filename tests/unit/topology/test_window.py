from __future__ import annotations

from typing import Any

import pytest

from penstock import Topology
from penstock.errors import TopologyError
from penstock.topology.durations import parse_duration, write_duration
from penstock.topology.window import Span, Window, WindowKind, parse_emission, parse_span
from penstock.topology.yaml_writer import write_topology


@pytest.mark.parametrize(("text", "span", "written"), [
    ("tumbling(1 minute)", Span(WindowKind.TUMBLING, 60_000, 60_000), "tumbling(1m)"),
    (" Sliding( 10 minutes , 90s ) ", Span(WindowKind.SLIDING, 600_000, 90_000), "sliding(10m, 90s)"),
    ("session(1.5 hours)", Span(WindowKind.SESSION, 5_400_000, 5_400_000), "session(90m)"),
    ("tumbling(2 days)", Span(WindowKind.TUMBLING, 172_800_000, 172_800_000), "tumbling(2d)"),
    ("tumbling(0.25)", Span(WindowKind.TUMBLING, 250, 250), "tumbling(250ms)"),
    ("tumbling(1 tuple)", Span(WindowKind.TUMBLING, 1, 1, True), "tumbling(1 tuple)"),
    ("sliding(100 Tuples,10 tuples)", Span(WindowKind.SLIDING, 100, 10, True), "sliding(100 tuples, 10 tuples)"),
])
def test_a_window_is_read_and_written_back_as_the_same(text: str, span: Span, written: str) -> None:
    assert parse_span(text) == span
    assert str(span) == written
    assert parse_span(written) == span


@pytest.mark.parametrize(("text", "message"), [
    ("1 minute", "'1 minute' is not a window; write tumbling(1 minute)"),
    ("sliding(10 minutes", "'sliding(10 minutes' is not a window; put it in quotes"),
    ("tumblin(1 minute)", "unknown window 'tumblin': did you mean 'tumbling'?"),
    ("count(5)", "unknown window 'count': write tumbling"),
    ("tumbling()", "tumbling takes one length"),
    ("tumbling(1m, 1m)", "tumbling takes one length"),
    ("sliding(1m)", "sliding takes its length and its step"),
    ("sliding(1m, 2m)", "with a step longer than the window"),
    ("session(soon)", "'soon' is not a duration"),
    ("session(5 tuples)", "a session ends with a break in time; write session(5 minutes), or tumbling(5 tuples)"),
    ("sliding(1m, 5 tuples)", "write both in tuples, or both in time"),
    ("tumbling(0 tuples)", "'0 tuples' cannot be the length of a window"),
    ("tumbling(1.5 tuples)", "'1.5 tuples' is not a duration"),
    ("sliding(10 tuples, 11 tuples)", "with a step longer than the window"),
    ("session(0s)", "'0s' cannot be the length of a window"),
    ("session(0.1ms)", "'0.1ms' cannot be the length of a window"),
])
def test_a_window_that_cannot_be_says_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as error:
        parse_span(text)
    assert message in str(error.value)


def test_durations_have_short_and_long_units() -> None:
    assert [parse_duration(text) for text in ("2min", "2 minutes", "1 hour", "3d", "5 ms", "5", "5 weeks")] == [
        120, 120, 3600, 259_200, 0.005, None, None]
    assert [write_duration(each) for each in (86_400_000, 90_000, 1500)] == ["1d", "90s", "1500ms"]


def test_a_function_of_a_window_reads_back_as_it_is_written(read: Any) -> None:
    stream = Topology("t").source("clicks", file="clicks.csv", schema="user string, at timestamp")
    topology = stream.window("sliding(9 tuples, 3 tuples)", by="user", custom="own:visits", emits="user string, n int",
                             with_={"least": 2}, name="visits").sink("out", memory=True)
    written = write_topology(topology)
    assert 'window: "sliding(9 tuples, 3 tuples)", by: user, custom: "own:visits"' in written
    assert read(written) == (topology, [])


def test_the_builder_makes_a_window() -> None:
    stream = Topology("t").source("clicks", file="x.csv", schema="user string, at timestamp")
    topology = stream.window("tumbling(1 minute)", on="at", lateness="30s", by="user", compute="count() as n").sink(
        "out", console=True)
    (window,) = topology.operators
    assert isinstance(window, Window)
    assert (str(window.span), window.on, window.lateness, window.keys) == ("tumbling(1m)", "at", 30.0, ("user",))
    assert (window.compute, window.emit, window.late) == (("count() as n",), "close", "drop")
    with pytest.raises(TopologyError, match="'chnages' does not say when windows appear: did you mean 'changes'"):
        stream.window("tumbling(1 minute)", compute="count() as n", emit="chnages")


@pytest.mark.parametrize(("written", "kept", "every"), [
    ("close", "close", 1), ("Every  5 Epochs", "every 5 epochs", 5), ("every 1 epoch", "changes", 1),
])
def test_when_windows_appear_is_read(written: str, kept: str, every: int) -> None:
    stream = Topology("t").source("clicks", file="x.csv", schema="user string")
    (window,) = stream.window("tumbling(1s)", compute="count() as n", emit=written).sink("out", console=True).operators
    assert isinstance(window, Window)
    assert (window.emit, window.every, window.closes) == (kept, every, kept == "close")


@pytest.mark.parametrize("written", ["every 0 epochs", "every epoch", "5 epochs", "sometimes"])
def test_nonsense_about_when_windows_appear_is_refused(written: str) -> None:
    with pytest.raises(TopologyError, match=r"at least one|every 5 epochs"):
        parse_emission(written)
