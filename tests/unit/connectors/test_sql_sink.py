from __future__ import annotations

import datetime
import os
import pickle
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import EVERY_GUARANTEE, Place, SinkConnector, Staged
from penstock.connectors.sql_sink import SqlSink
from penstock.coordination.sqlite_waiting import stopped_writers
from penstock.errors import ConnectorError, TopologyError

from ...stopped_writer import writer
from ...waiting import wait_until
from .sink_conformance import Rows, SinkConformance, batch_for, some_rows, stage

URL = "sqlite:///out/reach.db"


def sql_sink(
    folder: Path, table: str = "counts", topology: str = "reach", name: str = "out", run: str = "", **options: Any
) -> SqlSink:
    return SqlSink.configure(Place(topology, name, folder, run), {"sql": URL, "table": table, **options})


def opened(folder: Path, fresh: bool = True, **options: Any) -> SqlSink:
    sink = sql_sink(folder, **options)
    sink.open(fresh=fresh)
    return sink


def query(folder: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(folder / "out/reach.db")) as database, database:
        return database.execute(statement, values).fetchall()


def rows_in(sink: SqlSink) -> Rows:
    return [row for batch in sink.read_back() for row in batch.to_pylist()]


def commit(sink: SqlSink, epoch: int, *batches: pa.RecordBatch) -> None:
    sink.commit(epoch, [sink.stage(iter([batch])) for batch in batches])


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def staged_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".staging/*/*") if path.is_file()]


class TestAppending(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return sql_sink(folder)

    def visible(self, folder: Path) -> Rows:
        return rows_in(sql_sink(folder))


class TestUpserting(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return sql_sink(folder, mode="upsert", key=["id"])

    def visible(self, folder: Path) -> Rows:
        return rows_in(sql_sink(folder))


# What is written in a topology.

@pytest.mark.parametrize(("options", "message"), [
    ({"sql": ""}, "sink 'out': sql needs the address of a database, for example sqlite:///"),
    ({"sql": "out/reach.db"}, "that is not the address of a database; write one like this"),
    ({"sql": "mysql://u:hidden@host/db"}, "sql writes to SQLite and PostgreSQL, not to mysql"),
    ({"sql": "postgresql+asyncpg://host/db"}, "write postgresql:// instead of postgresql"),
    ({"sql": "sqlite://"}, "sql needs a database file, for example sqlite:///out/out.db"),
    ({"sql": "sqlite:///:memory:"}, "sql needs a database file"),
    ({"sql": "sqlite://out/reach.db"}, "three slashes"),
    ({"sql": "postgresql://u:hidden@hidden@host/db"}, "'@' must be percent-encoded .* PGPASSWORD"),
    ({"sql": "postgresql://u:hidden@host:hidden/db"}, "not the address of a database"),
    ({"table": " "}, "sql needs the name of a table: table: out"),
    ({"table": "shop.counts"}, "SQLite has no schemas: write table: counts"),
    ({"sql": "postgresql://host/db", "table": "a.b.c"}, "'a.b.c' is not a table: write a name, or schema.name"),
    ({"mode": "replace"}, "mode is 'replace'; use append, upsert"),
    ({"mode": "upsert"}, "mode: upsert needs the columns that tell rows apart"),
    ({"key": ["id"]}, "a key is only for mode: upsert"),
    ({"existing": "drop"}, "existing is 'drop'; use refuse, keep, overwrite"),
])
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message) as refusal:
        SqlSink.configure(Place("reach", "out", Path()), {"sql": URL, "table": "counts", **options})
    assert "hidden" not in str(refusal.value)


def test_a_relative_database_lies_beside_the_topology(tmp_path: Path) -> None:
    opened(tmp_path)
    assert (tmp_path / "out/reach.db").is_file()


def test_an_absolute_database_stays_where_it_is(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere/a b.db"
    opened(tmp_path / "topology", sql=f"sqlite:///{elsewhere}")
    assert elsewhere.is_file()


@pytest.mark.parametrize("address", [
    "postgresql://ann:hidden@host/db", "postgres://ann:hid%64en@host/db?password=hidden"])
def test_a_password_is_shown_nowhere(address: str) -> None:
    sink = sql_sink(Path(), sql=address)
    assert "hidden" not in repr(sink)
    assert "hid%64en" not in repr(sink)
    assert sink.target.shown == "postgresql://ann:***@host/db"
    assert sink.target.url.startswith("postgresql+psycopg://ann:hidden@host/db")


def test_a_key_may_be_written_as_text() -> None:
    assert sql_sink(Path(), mode="upsert", key="word, day").target.key == ("word", "day")


def test_a_key_that_the_stream_lacks_is_refused_before_anything_runs() -> None:
    sink = sql_sink(Path(), mode="upsert", key=["word"])
    with pytest.raises(TopologyError, match="the key column 'word' is not among the columns of its stream: id, user"):
        sink.with_columns(["id", "user"])


def test_it_keeps_every_guarantee() -> None:
    assert SqlSink.keeps == EVERY_GUARANTEE


# The ledger.

def test_an_epoch_is_noted_with_its_rows(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(3, [stage(sink, some_rows(0, 2)), stage(sink, some_rows(2, 3))])
    sink.commit(4, [])
    ((*noted, committed_at),) = query(tmp_path, "SELECT * FROM penstock_epochs")
    assert noted == ["reach", "out", "counts", 1, 4, 5]
    written = datetime.datetime.fromisoformat(committed_at).replace(tzinfo=datetime.UTC)
    assert abs(datetime.datetime.now(datetime.UTC) - written) < datetime.timedelta(minutes=1)


def test_rows_and_epoch_are_one_transaction(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    staged = [stage(sink, some_rows(2, 2)), stage(sink, some_rows(4, 2))]
    lost = Path(staged[1].detail["part"])
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(ConnectorError, match=r"rows staged for epoch 1 are gone: .*must see the same folder"):
        sink.commit(1, staged)
    assert rows_in(sink) == some_rows(0, 2)
    assert query(tmp_path, "SELECT epoch, rows FROM penstock_epochs") == [(0, 2)]
    lost.write_bytes(kept)
    sink.commit(1, staged)
    assert rows_in(sink) == some_rows(0, 6)


def test_a_lost_ledger_stops_the_run_and_destroys_nothing(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    query(tmp_path, "DELETE FROM penstock_epochs")
    with pytest.raises(ConnectorError, match=r"penstock_epochs in sqlite:///out/reach.db, .* no longer speaks of sink"):
        sink.commit(1, [stage(sink, some_rows(2, 2))])
    assert rows_in(sink) == some_rows(0, 2)


def test_replicas_that_commit_at_once_write_each_epoch_once(tmp_path: Path) -> None:
    opened(tmp_path)
    replicas = [opened(tmp_path, fresh=False, patience=30 + number) for number in range(3)]
    start = threading.Barrier(len(replicas))
    failures: list[BaseException] = []

    def run(replica: SqlSink) -> None:
        try:
            start.wait(10)
            for epoch in range(20):
                replica.commit(epoch, [stage(replica, some_rows(epoch * 2 + task, 1)) for task in range(2)])
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(replica,)) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert rows_in(replicas[0]) == some_rows(0, 40)


# Staging.

def test_nothing_stays_in_the_staging_folder(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(0, [stage(sink, some_rows(0, 1)), stage(sink, [])])
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    sink.abort([stage(sink, some_rows(0, 1))])
    assert staged_files(tmp_path) == []
    sink.close()
    assert not (tmp_path / ".penstock/.staging").exists()


def test_a_fresh_run_removes_leftovers_of_its_own_sink_only(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path, table="others", name="other")
    stage(mine, some_rows(0, 1))
    kept = stage(other, some_rows(0, 1))
    opened(tmp_path)
    assert staged_files(tmp_path) == [Path(kept.detail["part"])]


def test_a_run_that_continues_removes_only_old_leftovers(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    old, young = (Path(stage(sink, some_rows(0, 1)).detail["part"]) for _ in range(2))
    os.utime(old, (0, 0))
    opened(tmp_path, fresh=False)
    assert staged_files(tmp_path) == [young]


def test_a_replica_removes_what_its_killed_predecessor_has_staged_and_nothing_of_its_siblings(tmp_path: Path) -> None:
    opened(tmp_path)
    killed, sibling = (opened(tmp_path, False, run=run) for run in ("1", "2"))
    for _ in range(2):
        stage(killed, some_rows(0, 2))
    staged = stage(sibling, some_rows(0, 1))
    opened(tmp_path, False, run="1")
    assert staged_files(tmp_path) == [Path(staged.detail["part"])]
    sibling.commit(0, [staged])
    assert rows_in(sibling) == some_rows(0, 1)


def test_a_staging_folder_of_the_users_own_is_used(tmp_path: Path) -> None:
    sink = opened(tmp_path, staging="shared")
    assert (tmp_path / "shared") in Path(stage(sink, some_rows(0, 1)).detail["part"]).parents


def test_executors_need_no_database(tmp_path: Path) -> None:
    sink = pickle.loads(pickle.dumps(sql_sink(tmp_path, sql="postgresql://nobody@nowhere.invalid/none")))
    staged = sink.stage(iter([batch_for(sink, some_rows(0, 2))]))
    assert isinstance(staged, Staged) and staged.rows == 2


# A world that says no.

def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/reach.db").write_text("my diary " * 200)
    with pytest.raises(ConnectorError, match=r"sqlite:///out/reach.db: file is not a database: choose another file"):
        opened(tmp_path)
    assert (tmp_path / "out/reach.db").read_text().startswith("my diary")


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConnectorError, match=f"{tmp_path}/out is a file, not a folder"):
        opened(tmp_path)


def test_a_database_that_another_program_holds_is_waited_for_only_so_long(tmp_path: Path) -> None:
    sink = opened(tmp_path, patience=0.1)
    staged = [stage(sink, some_rows(0, 1))]
    with closing(sqlite3.connect(tmp_path / "out/reach.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConnectorError, match="database is locked: another program holds it for writing"):
            sink.commit(0, staged)
    sink.commit(0, staged)
    assert rows_in(sink) == some_rows(0, 1)


def test_a_replica_that_was_stopped_inside_a_commit_is_not_waited_for(tmp_path: Path) -> None:
    sink = opened(tmp_path, patience=60)
    staged = [stage(sink, some_rows(0, 1))]
    file = tmp_path / "out/reach.db"
    with writer(file, "--replica", "1") as frozen:
        os.kill(frozen.pid, signal.SIGSTOP)
        wait_until(lambda: stopped_writers(file) == {frozen.pid})
        sink.commit(0, staged)
        assert frozen.wait(10) == -signal.SIGKILL
    assert rows_in(sink) == some_rows(0, 1)


# For comparing runs.

def test_what_is_read_back_are_the_streams_own_columns(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    query(tmp_path, "CREATE TABLE counts (number INTEGER PRIMARY KEY, id INTEGER, user TEXT)")
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    assert rows_in(sink.with_columns(["id", "user"])) == some_rows(0, 2)
    assert rows_in(sink)[0] == {"number": 1, **some_rows(0, 1)[0]}


def test_a_redirected_sink_leaves_the_real_one_alone(tmp_path: Path) -> None:
    real = opened(tmp_path, mode="upsert", key=["id"])
    real.commit(0, [stage(real, some_rows(0, 1))])
    scratch = real.redirected(tmp_path / "scratch")
    scratch.open(fresh=True)
    scratch.commit(0, [stage(scratch, some_rows(5, 2) + some_rows(5, 1))])
    assert rows_in(scratch) == some_rows(5, 2)
    assert rows_in(real) == some_rows(0, 1)
    scratch.close()
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["out.db"]


def test_a_redirected_sink_of_a_server_needs_no_server(tmp_path: Path) -> None:
    sink = sql_sink(tmp_path, sql="postgresql://nobody:hidden@nowhere.invalid/none", table="shop.counts")
    scratch = sink.redirected(tmp_path / "scratch")
    scratch.open(fresh=True)
    scratch.commit(0, [stage(scratch, some_rows(0, 1))])
    assert rows_in(scratch) == some_rows(0, 1)
