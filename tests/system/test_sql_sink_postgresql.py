"""The `sql` sink on a real PostgreSQL server, which is killed, restarted and cut off."""

from __future__ import annotations

import datetime
import json
import math
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from penstock.connectors.base import Place, SinkConnector, Staged
from penstock.connectors.sql_lookup_table import SqlTable
from penstock.connectors.sql_sink import SqlSink
from penstock.errors import ConnectorError
from penstock.topology.schema import parse_schema

from ..servers.cutting_proxy import cutting_proxy
from ..servers.postgresql import PASSWORD, PostgresServer
from ..unit.connectors.sink_conformance import Rows, SinkConformance, some_rows, stage
from ..unit.connectors.test_sql_sink import batch_of, commit, rows_in, staged_files
from ..unit.connectors.test_sql_sink_values import every_type, nested_values
from ..waiting import wait_until

PATIENCE_SECONDS = 120


@pytest.fixture
def server(postgresql: PostgresServer) -> PostgresServer:
    return postgresql


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    """The address of a new database."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.url(name)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def sql_sink(folder: Path, url: str, table: str = "counts", name: str = "out", **options: Any) -> SqlSink:
    return SqlSink.configure(Place("reach", name, folder), {"sql": url, "table": table, **options})


def opened(folder: Path, url: str, fresh: bool = True, **options: Any) -> SqlSink:
    sink = sql_sink(folder, url, **options)
    sink.open(fresh=fresh)
    return sink


def query(url: str, statement: Any, *values: Any) -> list[Any]:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


HOLD_UP_ROW_1500 = (
    "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.id = 1500 THEN PERFORM pg_advisory_xact_lock(1500); END IF; RETURN NEW; END $$",
    "CREATE TRIGGER hold_up BEFORE INSERT ON counts FOR EACH ROW EXECUTE FUNCTION hold_up()")
"""A commit stops in the middle of its rows while somebody holds the lock 1500."""


class PostgresConformance(SinkConformance):
    @pytest.fixture(autouse=True)
    def _own_database(self, database: str) -> None:
        self.url = database

    def visible(self, folder: Path) -> Rows:
        return rows_in(sql_sink(folder, self.url))


class TestAppending(PostgresConformance):
    def make(self, folder: Path) -> SinkConnector:
        return sql_sink(folder, self.url)


class TestUpserting(PostgresConformance):
    def make(self, folder: Path) -> SinkConnector:
        return sql_sink(folder, self.url, mode="upsert", key=["id"])

    def visible(self, folder: Path) -> Rows:
        return sorted(super().visible(folder), key=lambda row: int(row["id"]))


# Tables and rows.

def test_the_last_row_of_a_key_wins_within_and_across_epochs(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database, mode="upsert", key=["word"])
    commit(sink, 0, batch_of(word=["a", "b", "a"], count=[1, 1, 2]), batch_of(word=["b", "c"], count=[2, 1]))
    commit(sink, 1, batch_of(word=["a"], count=[3]))
    assert query(database, "SELECT * FROM counts ORDER BY word") == [("a", 3), ("b", 2), ("c", 1)]


def test_a_key_of_all_columns_makes_a_set(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database, mode="upsert", key=["day", "word"])
    commit(sink, 0, batch_of(word=["a", "b", "a"], day=[1, 1, 1]))
    assert query(database, "SELECT * FROM counts ORDER BY word") == [("a", 1), ("b", 1)]


def test_upsert_fills_only_its_own_columns(tmp_path: Path, database: str) -> None:
    query(database, "CREATE TABLE counts (word text UNIQUE, count int, note text NOT NULL DEFAULT 'new', "
                    "number bigserial PRIMARY KEY)")
    sink = opened(tmp_path, database, mode="upsert", key=["word"])
    commit(sink, 0, batch_of(word=["a", "b"], count=[1, 1]))
    query(database, "UPDATE counts SET note = 'seen'")
    commit(sink, 1, batch_of(word=["b", "c"], count=[2, 1]))
    assert query(database, "SELECT word, count, note FROM counts ORDER BY word") == [
        ("a", 1, "seen"), ("b", 2, "seen"), ("c", 1, "new")]


def test_a_schema_holds_table_and_ledger(tmp_path: Path, database: str) -> None:
    with pytest.raises(ConnectorError, match="has no schema 'Shop': create it"):
        opened(tmp_path, database, table="Shop.Order")
    query(database, 'CREATE SCHEMA "Shop"')
    for options in ({}, {"mode": "upsert", "key": ["id"]}):
        query(database, 'DROP TABLE IF EXISTS "Shop"."Order"')
        sink = opened(tmp_path, database, table="Shop.Order", **options)
        sink.commit(2, [stage(sink, some_rows(0, 3))])
        assert query(database, 'SELECT count(*) FROM "Shop"."Order"') == [(3,)]
    assert query(database, 'SELECT table_name, epoch FROM "Shop".penstock_epochs') == [("Order", 2)]
    assert query(database, "SELECT to_regclass('public.penstock_epochs')") == [(None,)]


@pytest.mark.parametrize(("table", "problem"), [
    ("id bigint", "it has no column 'user', which should be TEXT"),
    ('id text, "user" text', "column 'id' is TEXT and should be BIGINT"),
    ('id bigint, "user" bytea', "column 'user' is BYTEA and should be TEXT"),
    ('id bigint, "user" text, at date NOT NULL', r"column 'at' needs a value \(NOT NULL without a default\)"),
    ('id timestamptz, "user" text', "column 'id' is TIMESTAMP WITH TIME ZONE and should be BIGINT"),
])
def test_another_schema_is_refused_before_a_row_is_written(
    tmp_path: Path, database: str, table: str, problem: str
) -> None:
    query(database, f"CREATE TABLE counts ({table})")
    sink = opened(tmp_path, database)
    with pytest.raises(ConnectorError, match=rf"table 'counts' of postgresql://.* does not fit .*: {problem}"):
        sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert query(database, "SELECT count(*) FROM counts") == [(0,)]
    assert query(database, "SELECT epoch FROM penstock_epochs") == [(-1,)]


@pytest.mark.parametrize(("table", "fits"), [
    ('id bigint, "user" text', False),
    ('id bigint PRIMARY KEY, "user" text', True),
    ('id bigint UNIQUE, "user" text', True),
    ('id bigint, "user" text, UNIQUE (id, "user")', False),
])
def test_upsert_needs_a_constraint_on_its_key(tmp_path: Path, database: str, table: str, fits: bool) -> None:
    query(database, f"CREATE TABLE counts ({table})")
    if fits:
        sink = opened(tmp_path, database, mode="upsert", key=["id"])
        sink.commit(0, [stage(sink, some_rows(0, 2) + some_rows(1, 1))])
        assert sorted(row["id"] for row in rows_in(sink)) == [0, 1]
    else:
        with pytest.raises(ConnectorError, match=r'no primary key or unique constraint on \("id"\), .*: add UNIQUE'):
            opened(tmp_path, database, mode="upsert", key=["id"])


def test_rows_of_someone_else_are_refused_kept_or_replaced(tmp_path: Path, database: str) -> None:
    query(database, 'CREATE TABLE counts (id bigint, "user" text)')
    query(database, "INSERT INTO counts VALUES (90, 'precious')")
    with pytest.raises(ConnectorError, match="holds 1 row, none of them written by this sink"):
        opened(tmp_path, database)
    sink = opened(tmp_path, database, existing="keep")
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert sorted(row["id"] for row in rows_in(sink)) == [0, 90]
    sink = opened(tmp_path, database, existing="overwrite")
    sink.commit(0, [stage(sink, some_rows(5, 1))])
    assert rows_in(sink) == some_rows(5, 1)
    assert rows_in(opened(tmp_path, database)) == []


def test_a_value_that_the_table_cannot_take_is_told_with_its_place(tmp_path: Path, database: str) -> None:
    query(database, 'CREATE TABLE counts (id smallint, "user" varchar(5))')
    sink = opened(tmp_path, database)
    with pytest.raises(ConnectorError, match=r"epoch 0 could not be written: value too long .*COPY counts, line 1"):
        sink.commit(0, [stage(sink, some_rows(0, 1))])
    with pytest.raises(ConnectorError, match="cannot hold the character NUL"):
        commit(sink, 0, batch_of(id=[1], user=["a\0b"]))
    assert rows_in(sink) == []


# Values.

def test_every_type_comes_back_as_it_went(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database)
    commit(sink, 0, every_type())
    (back,) = sink.read_back()
    assert back.to_pydict() == every_type().to_pydict()
    types = dict(query(database, "SELECT column_name, data_type FROM information_schema.columns "
                                 "WHERE table_name = 'counts'"))
    assert types == {
        "tiny": "smallint", "large": "bigint", "single": "real", "double": "double precision", "flag": "boolean",
        "text": "text", "price": "numeric", "exact": "numeric", "day": "date", "at": "timestamp with time zone",
        "local": "timestamp without time zone", "raw": "bytea", '100% "odd" ?': "text"}


def test_every_type_can_be_upserted(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database, mode="upsert", key=["tiny", '100% "odd" ?'])
    rows = every_type().slice(0, 2)
    commit(sink, 0, rows)
    commit(sink, 1, rows)
    (back,) = sink.read_back()
    assert back.to_pydict() == rows.to_pydict()


def test_the_database_reads_the_same_moment_whatever_its_own_zone(tmp_path: Path, database: str) -> None:
    query(database, f"ALTER DATABASE {database.rsplit('/', 1)[1]} SET timezone TO 'Asia/Tokyo'")
    sink = opened(tmp_path, database)
    commit(sink, 0, every_type().select(["at", "local"]).slice(0, 1))
    moment = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)
    assert query(database, "SELECT at AT TIME ZONE 'UTC', local FROM counts") == [(moment, moment)]


def test_nan_stays_nan(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database)
    commit(sink, 0, batch_of(x=[float("nan"), None], y=pa.array([float("nan"), 1.5], pa.float32())))
    ((x, y), (nothing, one)) = query(database, "SELECT * FROM counts")
    assert math.isnan(x) and math.isnan(y)
    assert (nothing, one) == (None, 1.5)


def test_nested_values_are_json_text_also_for_columns_of_json(tmp_path: Path, database: str) -> None:
    query(database, "CREATE TABLE counts (tags jsonb, by json, numbered text, deep jsonb)")
    sink = opened(tmp_path, database)
    commit(sink, 0, nested_values())
    assert query(database, "SELECT tags ->> 0, by ->> 'x', deep ->> 'sum' FROM counts LIMIT 1") == [("ä", "1", "1.10")]
    (back,) = sink.read_back()
    assert json.loads(back.column("numbered")[1].as_py()) == {"2": "NaN"}
    assert back.column("tags").to_pylist()[1:] == ["[]", None]


def test_text_finds_its_way_into_types_of_its_own(tmp_path: Path, database: str) -> None:
    query(database, "CREATE TYPE colour AS ENUM ('red', 'green')")
    query(database, "CREATE TABLE counts (id uuid, what colour, address inet)")
    sink = opened(tmp_path, database)
    identity = str(uuid.uuid4())
    commit(sink, 0, batch_of(id=[identity], what=["green"], address=["10.0.0.1"]))
    assert rows_in(sink) == [{"id": identity, "what": "green", "address": "10.0.0.1/32"}]


def test_a_single_column_of_nulls_and_empty_text_is_kept_apart(tmp_path: Path, database: str) -> None:
    words = ["\\.", None, "", "\\N", "a\n\\.\nb", None, '"']
    sink = opened(tmp_path, database)
    commit(sink, 0, batch_of(word=words))
    assert [row["word"] for row in rows_in(sink)] == words


def test_numbers_fit_wider_columns(tmp_path: Path, database: str) -> None:
    query(database, "CREATE TABLE counts (n numeric, x double precision, d numeric)")
    sink = opened(tmp_path, database)
    commit(sink, 0, pa.RecordBatch.from_pydict({
        "n": pa.array([7], pa.int64()), "x": pa.array([7], pa.int32()), "d": pa.array([0.5], pa.float64())}))
    assert query(database, "SELECT * FROM counts") == [(Decimal(7), 7.0, Decimal("0.5"))]


# A server that says no.

def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path, server: PostgresServer) -> None:
    closed = server.url().replace(str(server.port), "1")
    with pytest.raises(ConnectorError) as refusal:
        opened(tmp_path, closed)
    assert str(refusal.value) == ("postgresql://penstock:***@127.0.0.1:1/postgres: Connection refused: start the "
                                  "server, or correct host and port in the address")


@pytest.mark.parametrize(("wrong", "said"), [
    ({"password": "wrong-Pässwörd"}, 'password authentication failed for user "penstock": correct the user name or'),
    ({"user": "nobody"}, "correct the user name or password"),
    ({"database": "nowhere"}, 'database "nowhere" does not exist: create the database, or correct its name'),
])
def test_a_wrong_address_is_told_without_the_password(
    tmp_path: Path, server: PostgresServer, wrong: dict[str, str], said: str
) -> None:
    with pytest.raises(ConnectorError, match=said) as refusal:
        opened(tmp_path, server.url(**wrong))
    whole_story = f"{refusal.value}{refusal.value.__cause__!r}{refusal.getrepr(style='long', showlocals=False)}"
    assert "Pässwörd" not in str(refusal.value)
    assert PASSWORD not in whole_story


def test_a_user_without_rights_is_told_so(tmp_path: Path, server: PostgresServer, database: str) -> None:
    role = f"guest_{uuid.uuid4().hex[:8]}"
    query(database, f"CREATE ROLE {role} LOGIN PASSWORD 'guest'")
    try:
        address = server.url(database.rsplit("/", 1)[1], user=role, password="guest")
        with pytest.raises(ConnectorError, match="permission denied for schema public: grant the user the right"):
            opened(tmp_path, address)
    finally:
        query(database, f"DROP ROLE {role}")


# Epochs, replicas and faults.

def test_replicas_that_open_and_commit_at_once_write_each_epoch_once(tmp_path: Path, database: str) -> None:
    opened(tmp_path, database)
    start = threading.Barrier(3)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            start.wait(10)
            # Another patience is another pool of connections, as other processes have them.
            replica = opened(tmp_path, database, fresh=False, patience=30 + number)
            for epoch in range(20):
                replica.commit(epoch, [stage(replica, some_rows(epoch * 2 + task, 1)) for task in range(2)])
            replica.close()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert failures == []
    assert rows_in(sql_sink(tmp_path, database)) == some_rows(0, 40)


def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    tmp_path: Path, server: PostgresServer, database: str
) -> None:
    with cutting_proxy(server.port) as proxy:
        sink = opened(tmp_path, database.replace(str(server.port), str(proxy.port)))
        sink.commit(1, [stage(sink, some_rows(0, 3))])
        proxy.cut_after(b"COMMIT")
        sink.commit(2, [stage(sink, some_rows(3, 3))])
        assert proxy.cuts == 1
        sink.commit(3, [stage(sink, some_rows(6, 3))])
        sink.close()
    assert rows_in(sql_sink(tmp_path, database)) == some_rows(0, 9)
    assert query(database, "SELECT epoch, rows FROM penstock_epochs") == [(3, 9)]
    assert staged_files(tmp_path) == []


@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": ["id"]}], ids=["append", "upsert"])
@pytest.mark.parametrize("ending", ["kill", "stop_immediately", "stop"])
def test_a_server_that_dies_in_the_middle_of_a_commit_and_returns(
    tmp_path: Path, server: PostgresServer, database: str, ending: str, mode: dict[str, Any]
) -> None:
    sink = opened(tmp_path, database, patience=PATIENCE_SECONDS, **mode)
    sink.commit(1, [stage(sink, some_rows(0, 2))])
    for statement in HOLD_UP_ROW_1500:
        query(database, statement)
    staged = [stage(sink, some_rows(2, 1000)), stage(sink, some_rows(1002, 1000))]
    committing = threading.Thread(target=sink.commit, args=(2, staged), daemon=True)
    with psycopg.connect(database) as holder:
        holder.execute("SELECT pg_advisory_lock(1500)")
        committing.start()
        wait_until(lambda: query(database, "SELECT true FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
                   PATIENCE_SECONDS)
        getattr(server, ending)()
        with suppress(psycopg.Error):
            holder.rollback()
    server.start()
    committing.join(PATIENCE_SECONDS)
    assert not committing.is_alive()
    assert sorted(rows_in(sink), key=lambda row: int(row["id"])) == some_rows(0, 2002)
    assert query(database, "SELECT epoch, rows FROM penstock_epochs") == [(2, 2002)]


def test_a_server_killed_again_and_again_leaves_the_table_of_an_undisturbed_run(
    tmp_path: Path, server: PostgresServer, database: str
) -> None:
    def run(table: str) -> None:
        adding = opened(tmp_path, database, table=table, name=table, patience=PATIENCE_SECONDS)
        for epoch in range(1, 61):
            adding.commit(epoch, [stage(adding, some_rows(epoch * 100 + task * 50, 50)) for task in range(2)])
            reached[table] = epoch
            moved.set()
        adding.close()

    reached: dict[str, int] = {}
    moved = threading.Event()
    run("undisturbed")
    disturbed = threading.Thread(target=run, args=("disturbed",), daemon=True)
    disturbed.start()
    for number, ending in enumerate(["kill", "stop_immediately"] * 3):
        while disturbed.is_alive() and reached.get("disturbed", 0) < number * 9 + 3:
            moved.wait(1)
            moved.clear()
        assert disturbed.is_alive(), "the run was over before the server was killed"
        getattr(server, ending)()
        server.start()
    disturbed.join(PATIENCE_SECONDS)
    assert not disturbed.is_alive()
    tables = [query(database, f'SELECT id, "user" FROM {name} ORDER BY id') for name in ("undisturbed", "disturbed")]
    assert len(tables[0]) == 6000
    assert tables[1] == tables[0]


def test_a_server_that_stays_away_ends_the_run_which_then_goes_on_at_that_epoch(
    tmp_path: Path, server: PostgresServer, database: str
) -> None:
    sink = opened(tmp_path, database, patience=0.5)
    sink.commit(6, [stage(sink, some_rows(0, 2))])
    staged: list[Staged] = [stage(sink, some_rows(2, 2))]
    server.kill()
    try:
        with pytest.raises(ConnectorError) as given_up:
            sink.commit(7, staged)
        with pytest.raises(ConnectorError, match="Connection refused: start the server"):
            opened(tmp_path, database, fresh=False)
    finally:
        server.start()
    message = str(given_up.value)
    assert message.startswith("postgresql://penstock:***@127.0.0.1:")
    assert "could not be used for 0.5 seconds while epoch 7 was being written: Connection refused" in message
    assert message.endswith("start the topology again when the database is back, and it goes on at epoch 7")
    assert "Pässwörd" not in message
    again = opened(tmp_path, database, fresh=False)
    again.commit(7, staged)
    assert rows_in(again) == some_rows(0, 4)


def test_a_lock_of_somebody_else_is_waited_for_only_so_long(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database, patience=0.2)
    staged = [stage(sink, some_rows(0, 1))]
    with psycopg.connect(database) as other:
        other.execute("SELECT * FROM penstock_epochs FOR UPDATE")
        with pytest.raises(ConnectorError, match="canceling statement due to lock timeout"):
            sink.commit(0, staged)
    sink.commit(0, staged)
    assert rows_in(sink) == some_rows(0, 1)


@pytest.mark.parametrize("copying", [False, True], ids=["between statements", "within a copy"])
def test_a_sibling_that_fell_silent_inside_its_commit_is_not_waited_for(
    tmp_path: Path, database: str, copying: bool
) -> None:
    sink = opened(tmp_path, database, patience=PATIENCE_SECONDS)
    staged = [stage(sink, some_rows(0, 1))]
    with closing(psycopg.connect(database, application_name="penstock reach")) as frozen:
        frozen.execute("CREATE TEMPORARY TABLE incoming (id int)")
        frozen.execute("SELECT * FROM penstock_epochs FOR UPDATE")
        with ExitStack() as within:
            if copying:
                within.enter_context(suppress(psycopg.OperationalError))
                within.enter_context(frozen.cursor().copy("COPY incoming FROM STDIN"))
            began = time.monotonic()
            sink.commit(0, staged)
            assert time.monotonic() - began < PATIENCE_SECONDS / 2
    assert rows_in(sink) == some_rows(0, 1)


def test_a_sibling_that_is_at_work_is_waited_for(tmp_path: Path, database: str) -> None:
    sink = opened(tmp_path, database, patience=1.5)
    staged = [stage(sink, some_rows(0, 1))]
    over = threading.Event()
    with psycopg.connect(database, application_name="penstock reach") as busy:
        busy.execute("SELECT * FROM penstock_epochs FOR UPDATE")

        def work() -> None:
            while not over.is_set():
                busy.execute("SELECT pg_sleep(0.05)")

        thread = threading.Thread(target=work)
        thread.start()
        with pytest.raises(ConnectorError, match="lock timeout"):
            sink.commit(0, staged)
        over.set()
        thread.join(PATIENCE_SECONDS)
        assert busy.execute("SELECT 1").fetchone() == (1,)


def test_a_stream_is_enriched_from_a_table_as_it_is_now(tmp_path: Path, database: str) -> None:
    columns = parse_schema("id int, paid decimal(8,2)")
    table = SqlTable(Place("reach", "people", tmp_path), database, "People", columns, 60)
    query(database, 'CREATE TABLE "People" (id int, paid numeric(8,2), more text)')
    query(database, """INSERT INTO "People" VALUES (2, 1.50, 'x'), (1, NULL, 'y')""")
    first = table.snapshot(tmp_path)
    assert first.rows.to_pylist() == [{"id": 1, "paid": None}, {"id": 2, "paid": Decimal("1.50")}]
    assert table.snapshot(tmp_path).digest == first.digest
    query(database, 'UPDATE "People" SET paid = 2 WHERE id = 1')
    assert table.snapshot(tmp_path).digest != first.digest
    query(database, 'DROP TABLE "People"')
    with pytest.raises(ConnectorError, match="People"):
        table.snapshot(tmp_path)
