"""The embedded coordinator passes the suite, and survives what may happen to a file."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.coordination.base import Coordinator
from penstock.coordination.sqlite import SqliteCoordinator
from penstock.errors import CoordinationError

from ...waiting import wait_until
from .process_conformance import ProcessConformance
from .process_surroundings import ProcessSurroundings


class SqliteSurroundings(ProcessSurroundings):
    ttl = 1.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "c.sqlite"
        self.url = f"sqlite:{self.path}"

    def expire(self, coordinator: Coordinator) -> None:
        """As if a second were longer than it is."""
        with outside(self.path) as connection:
            connection.execute("UPDATE session SET deadline = 0")

    def go_away(self) -> None:
        self.path.rename(self.path.with_suffix(".away"))

    def come_back(self) -> None:
        self.path.with_suffix(".away").rename(self.path)


@contextmanager
def outside(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is not the coordinator's."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


class TestSqliteCoordinator(ProcessConformance):
    @pytest.fixture
    def surroundings(self, tmp_path: Path) -> SqliteSurroundings:
        return SqliteSurroundings(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sqlite"


def test_who_only_reads_and_writes_entries_has_no_thread(path: Path) -> None:
    before = set(threading.enumerate())

    def started() -> list[str]:
        return sorted(thread.name for thread in set(threading.enumerate()) - before)

    coordinator = SqliteCoordinator(path)
    coordinator.create_if_absent("k", "v")
    coordinator.put("k", "w")
    coordinator.list("")
    assert started() == []
    coordinator.create_ephemeral("e", "v")
    coordinator.watch("k", lambda: None)
    assert started() == ["penstock-session", "penstock-watcher"]
    coordinator.close()
    wait_until(lambda: started() == [])


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_ends_no_session(path: Path, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    owner, other = SqliteCoordinator(path), SqliteCoordinator(path)
    owner.create_ephemeral("e", "v")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)
    other.create_ephemeral("f", "v")
    assert set(other.list("")) == {"e", "f"}
    owner.close()
    other.close()


def test_a_session_of_before_the_machine_was_started_is_over(path: Path) -> None:
    """Its deadline counts from another start, and would seem to be far away."""
    coordinator = SqliteCoordinator(path)
    coordinator.create_ephemeral("e", "v")
    with outside(path) as connection:
        connection.execute("UPDATE session SET deadline = 1e9, process = 'another-start/pid:[1] 1 2'")
    other = SqliteCoordinator(path)
    wait_until(lambda: list(other.list("")) == [])
    other.close()
    coordinator.close()


def test_a_file_that_cannot_be_used_is_said_to_be(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CoordinationError, match="cannot be used"):
        SqliteCoordinator(blocked / "c.sqlite")


def test_a_file_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("this is no database, but somebody needs it\n" * 100)
    with pytest.raises(CoordinationError, match="not a database"):
        SqliteCoordinator(path, wait_seconds=0.1)
    assert path.read_text().startswith("this is no database")


def test_a_writer_that_holds_the_file_too_long_is_waited_for_and_then_reported(path: Path) -> None:
    coordinator = SqliteCoordinator(path, wait_seconds=0.1)
    coordinator.put("k", "before")
    with outside(path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CoordinationError, match="locked"):
            coordinator.put("k", "meanwhile")
        with pytest.raises(CoordinationError, match="locked"):
            coordinator.create_ephemeral("e", "meanwhile")
        assert coordinator.get("k") == "before"
        connection.execute("ROLLBACK")
    coordinator.put("k", "after")
    assert coordinator.create_ephemeral("e", "after") == "after"
    coordinator.close()


def test_who_only_reads_passes_over_the_dead_and_never_writes(path: Path) -> None:
    """A reader that is stopped while it writes would hold up everybody, and nobody may end it."""
    reader, writer = SqliteCoordinator(path, wait_seconds=0.1), SqliteCoordinator(path)
    writer.put("k/lasting", "v")
    owner = SqliteCoordinator(path)
    owner.create_ephemeral("k/dead", "v")
    with outside(path) as connection:
        # As if its owner had been frozen.
        connection.execute("UPDATE session SET deadline = 0")
        connection.execute("BEGIN IMMEDIATE")
        assert reader.get("k/dead") is None
        assert reader.list("k/") == ["k/lasting"]
        assert reader.entries("k/") == {"k/lasting": "v"}
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT count(*) FROM entry").fetchone() == (2,)
        # Who writes tidies up.
        writer.create_ephemeral("k/other", "v")
        assert connection.execute("SELECT key FROM entry ORDER BY key").fetchall() == [("k/lasting",), ("k/other",)]
    for coordinator in (owner, reader, writer):
        coordinator.close()


def test_a_session_that_cannot_write_for_its_time_to_live_is_lost_and_noticed(path: Path) -> None:
    coordinator = SqliteCoordinator(path, ttl=0.2, wait_seconds=0.1)
    losses: list[str] = []
    coordinator.on_expired(lambda: losses.append("lost"))
    coordinator.create_ephemeral("e", "first")
    with outside(path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        wait_until(lambda: losses)
        connection.execute("ROLLBACK")
    assert coordinator.create_ephemeral("e", "second") == "second"
    assert losses == ["lost"]
    coordinator.close()


def test_a_file_that_was_replaced_is_used_from_then_on(path: Path) -> None:
    coordinator = SqliteCoordinator(path)
    coordinator.put("k", "old")
    for file in path.parent.glob("c.sqlite*"):
        file.unlink()
    with pytest.raises(CoordinationError, match="No such file"):
        coordinator.get("k")
    assert not path.exists()
    SqliteCoordinator(path).put("k", "new")
    assert coordinator.get("k") == "new"


def test_a_lost_file_is_not_made_anew_by_those_who_watch_it(path: Path) -> None:
    coordinator = SqliteCoordinator(path, ttl=0.1)
    losses: list[str] = []
    coordinator.on_expired(lambda: losses.append("lost"))
    coordinator.create_ephemeral("e", "v")
    coordinator.watch("k", lambda: None)
    path.rename(path.with_suffix(".away"))
    wait_until(lambda: losses)
    assert not path.exists()
    coordinator.close()


def test_a_path_may_hold_what_means_something_in_an_address(tmp_path: Path) -> None:
    path = tmp_path / "50% of #1?mode=memory ü" / "c.sqlite"
    SqliteCoordinator(path).put("k", "v")
    assert SqliteCoordinator(path).get("k") == "v"
    assert path.exists()


def test_a_full_disk_is_reported_and_loses_nothing(path: Path) -> None:
    coordinator = SqliteCoordinator(path)
    coordinator.put("k", "before")
    connection = coordinator._file.connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(CoordinationError, match="full"):
        coordinator.put("k", "x" * 900_000)
    assert coordinator.get("k") == "before"
    connection.execute("PRAGMA max_page_count=1000000")
    coordinator.put("k", "after")
    assert coordinator.get("k") == "after"


def test_a_file_from_before_there_were_sessions_is_taken_over(path: Path) -> None:
    with outside(path) as connection:
        connection.execute("CREATE TABLE entry (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        connection.execute("INSERT INTO entry VALUES ('epochs/1', 'agreed')")
    coordinator = SqliteCoordinator(path)
    assert coordinator.get("epochs/1") == "agreed"
    assert coordinator.create_ephemeral("e", "v") == "v"
    coordinator.close()


def test_a_killed_owner_is_missed_at_once_however_long_its_time_to_live(tmp_path: Path) -> None:
    surroundings = SqliteSurroundings(tmp_path)
    surroundings.ttl = 3600
    coordinator = surroundings.open()
    told = threading.Event()
    owner = surroundings.start_owner("replicas/a", "here")
    coordinator.watch("replicas/", told.set)
    owner.kill()
    wait_until(told.is_set)
    assert coordinator.get("replicas/a") is None
    surroundings.tear_down()


def test_nothing_is_written_into_an_entry_of_the_dead(tmp_path: Path) -> None:
    surroundings = SqliteSurroundings(tmp_path)
    surroundings.ttl = 3600
    coordinator = surroundings.open()
    keys = ["put", "replace", "create"]
    for owner in [surroundings.start_owner(key, "old") for key in keys]:
        owner.tear_down()
    coordinator.put("put", "new")
    surroundings.start_owner("replace", "old").tear_down()
    assert not coordinator.replace("replace", "old", "new")
    surroundings.start_owner("create", "old").tear_down()
    assert coordinator.create_if_absent("create", "new") == "new"
    assert coordinator.list("") == ["create", "put"]
    assert coordinator.get("put") == "new"
    surroundings.tear_down()
