from __future__ import annotations

from penstock import Topology
from penstock.plan.graph import build_plan
from penstock.plan.output_mode import APPEND, UPDATE, output_mode
from penstock.plan.pruning import columns_read
from penstock.plan.rewrites import rewrite
from penstock.plan.small_epochs import output_is_bounded
from penstock.plan.text import plan_text
from penstock.topology.builder import Stream


def clicks() -> Stream:
    return Topology("t").source("clicks", file="x.csv", schema="user string, at timestamp, page string, ms int")


def windowed(compute: str = "count() as n", **options: str) -> Topology:
    span = options.pop("span", "tumbling(1m)")
    stream = clicks().window(span, on="at", by="user", compute=compute, name="w", **options)
    return stream.sink("out", console=True)


def test_windows_that_close_need_what_is_final_and_all_else_what_has_changed() -> None:
    assert output_mode(windowed()) == APPEND
    assert output_mode(windowed(emit="changes")) == UPDATE
    assert output_mode(clicks().count("user").sink("out", console=True)) == UPDATE


def test_a_window_reads_its_time_its_keys_and_what_it_computes() -> None:
    def read(compute: str) -> object:
        return columns_read(build_plan(windowed(compute)))["clicks"]

    assert read("count() as n") == {"user", "at"}
    assert read("max(ms + 1) as slowest") == {"user", "at", "ms"}
    assert read("top(3, ms) as slowest") is None


def test_what_a_window_gives_may_be_more_than_its_epoch_read() -> None:
    assert not output_is_bounded(build_plan(windowed()))
    assert output_is_bounded(build_plan(windowed(emit="changes")))
    assert not output_is_bounded(build_plan(windowed(emit="changes", span="sliding(1m, 10s)")))


def test_the_state_of_a_window_divides_its_input_itself() -> None:
    stream = clicks().window("tumbling(1m)", on="at", by="user", compute="count() as n", parallelism=4)
    plan = rewrite(build_plan(stream.sink("out", console=True)))
    assert [type(step).__name__ for step in plan.steps] == ["Read", "Apply", "Write"]


def test_the_plan_tells_of_a_window() -> None:
    assert "◆ w        native, state   tumbling(1m) on at by user: count() as n" in plan_text(build_plan(windowed()))
