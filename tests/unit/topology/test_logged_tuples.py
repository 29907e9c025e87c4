"""`logging: full` tells every tuple that an operator emits."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from penstock import Topology
from penstock.cli.display import JsonDisplay, LiveDisplay, PlainDisplay, logged_lines
from penstock.connectors.console import EpochRows
from penstock.topology.logged_tuples import is_only_logged, logged_streams, with_logged_tuples
from penstock.topology.model import FrozenOptions, StreamRef

COUNT = Topology("t").source("s", rows=[], schema="a int").filter("a > 1", name="big").sink("out", memory=True)


def test_light_logging_changes_nothing() -> None:
    assert with_logged_tuples(COUNT) is COUNT


def test_full_logging_listens_to_each_operator() -> None:
    full = with_logged_tuples(replace(COUNT, logging="full"))
    assert [(sink.kind, str(sink.input), is_only_logged(sink.name)) for sink in full.sinks] == [
        ("memory", "big", False), ("console", "big", True)
    ]  # fmt: skip
    assert logged_streams(full) == {"emitted-by-big": "big"}


def test_tuples_are_written_as_a_puppet_master_writes_them() -> None:
    table = pa.table({"id": [1, 2], "user": ["ann", None]})
    logged = {"emitted-by-OP1": "OP1"}
    assert logged_lines(EpochRows("emitted-by-OP1", 1, table, 2), logged) == ["tuple OP1, 1, ann", "tuple OP1, 2, "]
    assert logged_lines(EpochRows("out", 1, table, 2), logged) == []


def test_what_a_console_shows_is_logged_there_whole_and_once() -> None:
    consoles = [replace(COUNT.sinks[0], name=name, kind="console", options=FrozenOptions({"limit": 5}))
                for name in ("seen", "again")]  # fmt: skip
    of_the_source = replace(consoles[0], name="raw", input=StreamRef("s"))
    shown = replace(COUNT, logging="full", sinks=(*consoles, of_the_source))
    full = with_logged_tuples(shown)
    assert [sink.name for sink in full.sinks] == ["seen", "again", "raw"]
    assert logged_streams(full) == {"seen": "big"}
    limits = [sink.options["limit"] for sink in full.sinks]
    assert limits[0] > 1_000_000
    assert limits[1:] == [5, 5]
    assert logged_streams(with_logged_tuples(replace(shown, logging="light"))) == {}


@pytest.mark.parametrize("kind", [PlainDisplay, JsonDisplay, LiveDisplay])
def test_every_display_shows_such_tuples_and_logs_them(
    kind: type[PlainDisplay] | type[JsonDisplay] | type[LiveDisplay], capsys: pytest.CaptureFixture[str]
) -> None:
    console = replace(COUNT.sinks[0], name="seen", kind="console")
    full = with_logged_tuples(replace(COUNT, logging="full", sinks=(console,)))
    kind(full, lambda _: []).rows(EpochRows("seen", 1, pa.table({"a": [7]}), 1))
    told = capsys.readouterr()
    assert (told.out + told.err).count("tuple big, 7") == 1
    assert "7" in told.out.replace("tuple big, 7", "")
