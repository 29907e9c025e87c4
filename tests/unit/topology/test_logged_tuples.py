"""`logging: full` tells every tuple that an operator emits."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from penstock import Topology
from penstock.cli.display import logged_lines
from penstock.connectors.console import EpochRows
from penstock.topology.logged_tuples import logged_stream, with_logged_tuples

COUNT = Topology("t").source("s", rows=[], schema="a int").filter("a > 1", name="big").sink("out", memory=True)


def test_light_logging_changes_nothing() -> None:
    assert with_logged_tuples(COUNT) is COUNT


def test_full_logging_listens_to_each_operator() -> None:
    full = with_logged_tuples(replace(COUNT, logging="full"))
    assert [(sink.kind, str(sink.input), logged_stream(sink.name)) for sink in full.sinks] == [
        ("memory", "big", None), ("console", "big", "big")
    ]  # fmt: skip


def test_tuples_are_written_as_a_puppet_master_writes_them() -> None:
    table = pa.table({"id": [1, 2], "user": ["ann", None]})
    assert logged_lines(EpochRows("emitted-by-OP1", 1, table, 2)) == ["tuple OP1, 1, ann", "tuple OP1, 2, "]
    assert logged_lines(EpochRows("out", 1, table, 2)) == []


def test_what_a_console_shows_is_not_told_twice() -> None:
    console = replace(COUNT.sinks[0], name="seen", kind="console")
    shown = replace(COUNT, logging="full", sinks=(*COUNT.sinks, console))
    assert [sink.name for sink in with_logged_tuples(shown).sinks] == ["out", "seen"]
