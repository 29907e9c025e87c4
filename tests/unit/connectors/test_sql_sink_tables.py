from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConnectorError

from .sink_conformance import some_rows, stage
from .test_sql_sink import batch_of, commit, opened, query, rows_in, sql_sink, staged_files

# Who owns what is there.

def test_a_fresh_run_removes_what_the_last_run_wrote(tmp_path: Path) -> None:
    for count in (3, 1):
        sink = opened(tmp_path)
        for epoch in range(count):
            sink.commit(epoch, [stage(sink, some_rows(epoch, 1))])
        sink.close()
    assert rows_in(sink) == some_rows(0, 1)


def test_a_fresh_run_keeps_the_table_its_indexes_and_its_types(tmp_path: Path) -> None:
    opened(tmp_path)
    query(tmp_path, "CREATE TABLE counts (id INTEGER, user VARCHAR(40))")
    query(tmp_path, "CREATE INDEX by_user ON counts (user)")
    for _ in range(2):
        sink = opened(tmp_path)
        sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert query(tmp_path, "SELECT tbl_name FROM sqlite_master WHERE name = 'by_user'") == [("counts",)]
    assert rows_in(sink) == some_rows(0, 1)


def with_foreign_row(folder: Path, topology: str = "other") -> None:
    opened(folder, topology=topology, table="elsewhere").close()
    query(folder, "CREATE TABLE counts (id INTEGER PRIMARY KEY, user TEXT)")
    query(folder, "INSERT INTO counts VALUES (90, 'precious')")


def test_rows_of_someone_else_are_refused(tmp_path: Path) -> None:
    with_foreign_row(tmp_path)
    with pytest.raises(ConnectorError) as refusal:
        opened(tmp_path)
    assert str(refusal.value) == (
        "table 'counts' of sqlite:///out/reach.db holds 1 row, none of them written by this sink: name another table, "
        "or set existing: keep to write beside what is there, or existing: overwrite to replace it")
    assert query(tmp_path, "SELECT user FROM counts") == [("precious",)]


def test_rows_that_somebody_added_to_the_sinks_own_are_not_removed(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    query(tmp_path, "INSERT INTO counts VALUES (90, 'precious')")
    with pytest.raises(ConnectorError, match="holds 3 rows, of which this sink has written 2"):
        opened(tmp_path)
    assert len(rows_in(sink)) == 3


def test_existing_keep_writes_beside_them_and_never_removes_a_row(tmp_path: Path) -> None:
    with_foreign_row(tmp_path)
    for first in (0, 10):
        sink = opened(tmp_path, existing="keep")
        sink.commit(0, [stage(sink, some_rows(first, 1))])
    assert sorted(row["id"] for row in rows_in(sink)) == [0, 10, 90]


def test_rows_once_kept_are_not_removed_when_keep_is_taken_away(tmp_path: Path) -> None:
    with_foreign_row(tmp_path)
    upsert: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
    sink = opened(tmp_path, existing="keep", **upsert)
    for epoch in range(5):
        sink.commit(epoch, [stage(sink, some_rows(0, 2))])
    with pytest.raises(ConnectorError, match="holds 3 rows, none of them written by this sink"):
        opened(tmp_path, **upsert)
    assert len(rows_in(sink)) == 3


def test_existing_overwrite_replaces_them_and_the_table_is_then_the_sinks_own(tmp_path: Path) -> None:
    with_foreign_row(tmp_path)
    sink = opened(tmp_path, existing="overwrite")
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert rows_in(sink) == some_rows(0, 1)
    assert rows_in(opened(tmp_path)) == []


def test_a_table_of_another_sink_is_refused_with_its_name(tmp_path: Path) -> None:
    opened(tmp_path, topology="other", name="saved")
    with pytest.raises(ConnectorError, match="is written by sink 'saved' of topology 'other': name another table"):
        opened(tmp_path)
    opened(tmp_path, existing="overwrite")
    with pytest.raises(ConnectorError, match="no longer speaks of sink 'saved'"):
        sql_sink(tmp_path, topology="other", name="saved").commit(0, [])


def test_sinks_that_share_a_table_keep_their_own_epochs(tmp_path: Path) -> None:
    both = [opened(tmp_path, name=name, existing="keep") for name in ("a", "b")]
    for number, sink in enumerate(both):
        sink.commit(5, [stage(sink, some_rows(number, 1))])
        sink.commit(5, [stage(sink, some_rows(number, 1))])
    assert rows_in(both[0]) == some_rows(0, 2)


def test_a_run_does_not_go_on_in_another_table(tmp_path: Path) -> None:
    opened(tmp_path).commit(4, [])
    with pytest.raises(ConnectorError, match=r"has written up to epoch 4 to table 'counts' .*, not to 'totals'"):
        opened(tmp_path, table="totals", fresh=False)


def test_a_run_does_not_go_on_in_another_database(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="knows nothing of the epochs that sink 'out' of topology 'reach' has"):
        opened(tmp_path, fresh=False)


def test_a_run_does_not_go_on_when_its_table_is_gone(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(4, [stage(sink, some_rows(0, 2))])
    query(tmp_path, "DROP TABLE counts")
    with pytest.raises(ConnectorError, match="to which 2 rows were written up to epoch 4, is gone: put it back"):
        opened(tmp_path, fresh=False)


# Upsert.

def test_the_last_row_of_a_key_wins_within_and_across_epochs(tmp_path: Path) -> None:
    sink = opened(tmp_path, mode="upsert", key=["word"])
    commit(sink, 0, batch_of(word=["a", "b", "a"], count=[1, 1, 2]), batch_of(word=["b", "c"], count=[2, 1]))
    commit(sink, 1, batch_of(word=["a"], count=[3]))
    assert query(tmp_path, "SELECT word, count FROM counts ORDER BY word") == [("a", 3), ("b", 2), ("c", 1)]


def test_a_key_of_all_columns_makes_a_set(tmp_path: Path) -> None:
    sink = opened(tmp_path, mode="upsert", key=["day", "word"])
    commit(sink, 0, batch_of(word=["a", "b", "a"], day=[1, 1, 1]))
    assert query(tmp_path, "SELECT word, day FROM counts ORDER BY word") == [("a", 1), ("b", 1)]


def test_a_row_without_its_key_is_refused_where_it_is_staged(tmp_path: Path) -> None:
    sink = opened(tmp_path, mode="upsert", key=["word"])
    with pytest.raises(ConnectorError, match=r"no value in the key column 'word'.* \(filter: word is not null\)"):
        sink.stage(iter([batch_of(word=["a", None], count=[1, 2])]))
    assert staged_files(tmp_path) == []


# A table that does not fit.

@pytest.mark.parametrize(("table", "problem"), [
    ("id INTEGER", "it has no column 'user', which should be TEXT"),
    ("id INTEGER, users TEXT", r"it has no column 'user', which should be TEXT \(did you mean 'users'\?\)"),
    ("id TEXT, user TEXT", "column 'id' is TEXT and should be BIGINT"),
    ("id INTEGER, user BLOB", "column 'user' is BLOB and should be TEXT"),
    ("id INTEGER, user TEXT, at TEXT NOT NULL", r"column 'at' needs a value \(NOT NULL without a default\)"),
    ("id DATE, user REAL", "column 'id' is DATE and should be BIGINT; column 'user' is REAL and should be TEXT"),
])
def test_another_schema_is_refused_before_a_row_is_written(tmp_path: Path, table: str, problem: str) -> None:
    sink = opened(tmp_path)
    query(tmp_path, f"CREATE TABLE counts ({table})")
    with pytest.raises(ConnectorError, match=f"table 'counts' of sqlite:///out/reach.db does not fit .*: {problem}"):
        sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert query(tmp_path, "SELECT count(*) FROM counts") == [(0,)]
    assert query(tmp_path, "SELECT epoch FROM penstock_epochs") == [(-1,)]


@pytest.mark.parametrize("table", [
    "id INTEGER, user TEXT, at TEXT NOT NULL DEFAULT 'now', note TEXT",
    "number INTEGER PRIMARY KEY, user VARCHAR(40), id NUMERIC",
    "id, user",
])
def test_a_table_may_have_more_columns_that_fill_themselves(tmp_path: Path, table: str) -> None:
    sink = opened(tmp_path)
    query(tmp_path, f"CREATE TABLE counts ({table})")
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert query(tmp_path, "SELECT id, user FROM counts") == [(0, 'jürgen, "0"')]


@pytest.mark.parametrize(("table", "index", "fits"), [
    ("id INTEGER, user TEXT", "", False),
    ("id INTEGER PRIMARY KEY, user TEXT", "", True),
    ("id INTEGER UNIQUE, user TEXT", "", True),
    ("id INTEGER, user TEXT, UNIQUE (id, user)", "", False),
    ("id INTEGER, user TEXT", "CREATE UNIQUE INDEX one ON counts (id)", True),
    ("id INTEGER, user TEXT", "CREATE UNIQUE INDEX one ON counts (id) WHERE user = 'ann'", False),
])
def test_upsert_needs_a_constraint_on_its_key(tmp_path: Path, table: str, index: str, fits: bool) -> None:
    opened(tmp_path, mode="upsert", key=["id"])
    for statement in filter(None, (f"CREATE TABLE counts ({table})", index)):
        query(tmp_path, statement)
    if fits:
        sink = opened(tmp_path, mode="upsert", key=["id"])
        sink.commit(0, [stage(sink, some_rows(0, 2) + some_rows(1, 1))])
        assert rows_in(sink) == some_rows(0, 2)
    else:
        with pytest.raises(ConnectorError, match=r'no primary key or unique constraint on \("id"\), .*: add UNIQUE'):
            opened(tmp_path, mode="upsert", key=["id"])


def test_a_view_is_no_table(tmp_path: Path) -> None:
    opened(tmp_path, table="other")
    query(tmp_path, "CREATE VIEW counts AS SELECT 1 AS id")
    with pytest.raises(ConnectorError, match=r"'counts' of sqlite:///out/reach.db is a view: name a table"):
        opened(tmp_path)


def test_a_broken_constraint_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    opened(tmp_path)
    query(tmp_path, "CREATE TABLE counts (id INTEGER PRIMARY KEY, user TEXT)")
    sink = opened(tmp_path)
    with pytest.raises(ConnectorError, match=r"epoch 0 could not be written: UNIQUE .*: counts.id: .*upsert"):
        sink.commit(0, [stage(sink, some_rows(0, 2) + some_rows(0, 1))])
    assert rows_in(sink) == []
