"""A database and its connections: transactions, and patience when the database goes away and returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from penstock.connectors.sql_address import SQLITE
from penstock.connectors.sql_faults import explain, is_transient, lock_was_held
from penstock.connectors.sql_silent import end_silent_siblings
from penstock.connectors.sql_target import Target
from penstock.coordination.sqlite_waiting import LOOK_SECONDS, wait_for_writers
from penstock.errors import ConnectorError

Result = TypeVar("Result")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_CONNECT_SECONDS = 5
_LOCK_SECONDS = 1.0
"""How long a commit waits for a lock before it looks whether the sibling that holds it has fallen silent."""


class Database:
    """One database that sinks of this process write to. Connections are kept between epochs."""

    def __init__(self, target: Target) -> None:
        self._url, self._shown, self._patience = target.url, target.shown, target.patience
        self.engine = _engine(target)
        self.known_tables: dict[tuple[str, ...], pa.Schema] = {}
        """Tables whose columns were found right, by name and key, with the rows they were compared with."""
        driver: Any = self.engine.dialect.loaded_dbapi
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, driver.Error)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All or nothing, tried once; raises ConnectorError with what the database said."""
        # A new connection: one that was kept may lead to a server that has been restarted since.
        self.forget()
        try:
            with self.engine.begin() as connection:
                yield connection
        except self._errors as error:
            raise ConnectorError(f"{self._shown}: {explain(error, self._url)}") from None

    def patiently(self, epoch: int, work: Callable[[Connection], Result]) -> Result:
        """Do `work` in a transaction; begin anew on a new connection while the database is away.

        A transaction whose end was not seen may have been committed: `work` must look before it writes.
        """
        pause, give_up = _FIRST_PAUSE, 0.0
        while True:
            try:
                with self.engine.begin() as connection:
                    if connection.dialect.name != SQLITE:
                        milliseconds = int(min(self._patience, _LOCK_SECONDS) * 1000)
                        connection.exec_driver_sql(f"SET LOCAL lock_timeout TO {max(milliseconds, 1)}")
                    return work(connection)
            except self._errors as error:
                self.forget()
                if lock_was_held(error):
                    with suppress(*self._errors):
                        end_silent_siblings(self.engine)
                said = explain(error, self._url)
                if not is_transient(error):
                    raise ConnectorError(f"{self._shown}: epoch {epoch} could not be written: {said}") from None
                now = time.monotonic()
                give_up = give_up or now + self._patience
                if now >= give_up:
                    raise ConnectorError(
                        f"{self._shown} could not be used for {self._patience:g} seconds while epoch {epoch} was "
                        f"being written: {said}. Nothing is lost: start the topology again when the database is "
                        f"back, and it goes on at epoch {epoch}") from None
                time.sleep(min(pause, max(give_up - now, 0.0)))
                pause = min(pause * 2, _LONGEST_PAUSE)

    def forget(self) -> None:
        """Close the connections, and look again before trusting what was known of tables."""
        self.known_tables.clear()
        self.engine.dispose()


_databases: dict[tuple[str, float], Database] = {}
_opening = threading.Lock()


def database_of(target: Target) -> Database:
    """The database of `target`, shared by all sinks of this process that write there."""
    with _opening:
        found = _databases.get((target.url, target.patience))
        if found is None:
            try:
                found = Database(target)
            except ModuleNotFoundError as error:
                raise ConnectorError(f"{target.shown} needs the package {error.name}, which is not installed: "
                                     "pip install 'penstock[postgresql]'") from error
            _databases[target.url, target.patience] = found
        return found


def close_database(target: Target) -> None:
    """Let go of the connections; the next use makes new ones."""
    with _opening:
        found = _databases.pop((target.url, target.patience), None)
    if found is not None:
        found.forget()


def _engine(target: Target) -> Engine:
    url = make_url(target.url)
    if url.get_backend_name() == SQLITE:
        engine = create_engine(url, hide_parameters=True, connect_args={"timeout": target.patience})
        event.listen(engine, "connect", _leave_transactions_to_us)
        event.listen(engine, "begin", _writer(Path(url.database or ""), target.patience))
        return engine
    milliseconds = int(max(target.patience, 1) * 1000)
    wanted = {"connect_timeout": _CONNECT_SECONDS, "keepalives_idle": 5, "keepalives_interval": 5,
              "keepalives_count": 3, "tcp_user_timeout": milliseconds,
              "application_name": f"penstock {target.topology}"}
    arguments = {name: value for name, value in wanted.items() if name not in url.query}
    engine = create_engine(url, hide_parameters=True, connect_args=arguments)

    def settle(connection: Any, _: object) -> None:
        # Rows without a zone are UTC; a lock that a lost connection still holds is not waited for without end.
        connection.execute("SET timezone TO 'UTC'")
        connection.execute(f"SET lock_timeout TO {milliseconds}")
        connection.commit()

    event.listen(engine, "connect", settle)
    return engine


def _leave_transactions_to_us(connection: Any, _: object) -> None:
    # Python's driver would begin late and commit before changes of the schema.
    connection.isolation_level = None


def _writer(file: Path, patience: float) -> Callable[[Connection], None]:
    def begin(connection: Connection) -> None:
        own: Any = connection.connection.driver_connection
        own.execute(f"PRAGMA busy_timeout={int(min(patience, LOOK_SECONDS) * 1000)}")
        # A transaction that reads first and writes later cannot wait for another writer: it fails at once.
        wait_for_writers(file, patience, lambda: own.execute("BEGIN IMMEDIATE"))
        own.execute(f"PRAGMA busy_timeout={int(patience * 1000)}")

    return begin
