"""Rows of replicas' consoles: each is shown once, with its epoch, in the order of the epochs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Topology
from penstock.connectors.memory import rows_of
from penstock.connectors.shown_rows import ShownRows, shown_sink

ONE = Topology("t").source("s", rows=[], schema="a int").sink("left", console=True)
PAIR = replace(ONE, sinks=(*ONE.sinks, replace(ONE.sinks[0], name="right")))


def deliver(home: Path, epoch: int, name: str, *values: int, replica: str = "1") -> None:
    sink = shown_sink(next(sink for sink in PAIR.sinks if sink.name == name), PAIR, home, replica).shared()
    lines = pa.RecordBatch.from_pydict({"line": [f'{{"a":{value}}}\n' for value in values]})
    sink.commit(epoch, [sink.stage(iter([lines]))])


def make_ready(home: Path) -> None:
    """As who watches does before a run that begins."""
    for sink in PAIR.sinks:
        shown_sink(sink, PAIR, home).open(fresh=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_ready(tmp_path)
    return tmp_path


def new_rows(rows: ShownRows, is_over: bool = False) -> list[tuple[int, str, list[int]]]:
    found: list[tuple[int, str, list[int]]] = []
    rows.look(lambda one: found.append((one.epoch, one.sink, [row["a"] for row in rows_of(one.rows)])), is_over)
    return found


def test_rows_come_with_their_epoch_and_in_the_order_of_the_epochs(home: Path) -> None:
    for epoch in (1, 2):
        for replica in ("1", "2"):
            deliver(home, epoch, "left", epoch, epoch, replica=replica)
            deliver(home, epoch, "right", 10 * epoch, replica=replica)
    deliver(home, 3, "left")
    deliver(home, 3, "right", 30)
    rows = ShownRows(PAIR, home)
    assert new_rows(rows) == [
        (1, "left", [1, 1]), (1, "right", [10]), (2, "left", [2, 2]), (2, "right", [20]), (3, "right", [30])
    ]  # fmt: skip
    assert new_rows(rows) == []


def test_what_is_only_logged_comes_before_what_a_console_shows_of_the_same_epoch(tmp_path: Path) -> None:
    both = replace(ONE, sinks=(*ONE.sinks, replace(ONE.sinks[0], name="emitted-by-s")))
    for sink in both.sinks:
        shown = shown_sink(sink, both, tmp_path)
        shown.open(fresh=True)
        line = pa.RecordBatch.from_pydict({"line": ['{"a":1}\n']})
        shown.commit(1, [shown.stage(iter([line]))])
    assert new_rows(ShownRows(both, tmp_path)) == [(1, "emitted-by-s", [1]), (1, "left", [1])]


def test_an_epoch_that_not_all_consoles_have_waits_for_them_until_the_run_is_over(home: Path) -> None:
    rows = ShownRows(PAIR, home)
    deliver(home, 1, "left", 1)
    assert new_rows(rows) == []
    deliver(home, 1, "right", 10)
    deliver(home, 2, "left", 2)
    assert new_rows(rows) == [(1, "left", [1]), (1, "right", [10])]
    assert new_rows(rows, is_over=True) == [(2, "left", [2])]


def test_what_was_delivered_while_nobody_looked_is_shown_by_who_looks_next_and_nothing_twice(home: Path) -> None:
    deliver(home, 1, "left", 1)
    deliver(home, 1, "right")
    assert new_rows(ShownRows(PAIR, home)) == [(1, "left", [1])]
    deliver(home, 2, "left", 2)
    deliver(home, 2, "right", 20)
    assert new_rows(ShownRows(PAIR, home)) == [(2, "left", [2]), (2, "right", [20])]
    assert new_rows(ShownRows(PAIR, home)) == []


def test_one_that_dies_while_it_shows_an_epoch_has_only_that_shown_again(home: Path) -> None:
    for epoch in (1, 2, 3):
        deliver(home, epoch, "left", epoch)
        deliver(home, epoch, "right")
    shown: list[int] = []

    def dying(rows: object) -> None:
        if len(shown) == 1:
            raise KeyboardInterrupt
        shown.append(1)

    with pytest.raises(KeyboardInterrupt):
        ShownRows(PAIR, home).look(dying)
    assert [epoch for epoch, _, _ in new_rows(ShownRows(PAIR, home))] == [2, 3]


def test_half_an_epoch_is_not_shown(home: Path) -> None:
    deliver(home, 1, "left", 1)
    deliver(home, 1, "right")
    with (home / "shown" / "left.jsonl").open("ab") as file:
        file.write(b'2\n{"a":2}\n{"a"')
    rows = ShownRows(PAIR, home)
    assert new_rows(rows, is_over=True) == [(1, "left", [1])]
    deliver(home, 2, "left", 2, 3)
    assert new_rows(rows, is_over=True) == [(2, "left", [2, 3])]


def test_a_run_that_begins_anew_has_its_rows_shown_from_the_beginning(home: Path) -> None:
    deliver(home, 1, "left", 1)
    assert new_rows(ShownRows(ONE, home)) == [(1, "left", [1])]
    make_ready(home)
    deliver(home, 1, "left", 5, 6, 7, 8, 9)
    assert new_rows(ShownRows(ONE, home)) == [(1, "left", [5, 6, 7, 8, 9])]


def test_a_disk_that_is_full_ends_nobody_who_looks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(home, 1, "left", 1)
    monkeypatch.setattr(Path, "write_text", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    rows = ShownRows(ONE, home)
    assert new_rows(rows) == [(1, "left", [1])]
    assert new_rows(rows) == []
