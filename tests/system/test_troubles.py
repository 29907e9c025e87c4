"""Troubles of the outside world: each says what is wrong, and once its cause is gone the topology goes on as if
nothing had been."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.chaos.small_disk import small_disk

from ..own_mounts import with_own_mounts
from ..servers.zookeeper import ZookeeperServer
from .readings import EPOCHS, TOPOLOGY, Output, Project, readings

OUTAGE_SECONDS = 10.0
"""Longer than anybody's session lives."""

WITH_DATABASE = TOPOLOGY.replace("{from: odd, file: out/odd.jsonl}", '{from: odd, sql: "sqlite:///odd.db", table: odd}')

LOCK = """\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


def goes_on_to_the_end(project: Project, undisturbed: Output, *arguments: str) -> None:
    """The same command again, now that nothing is wrong any more."""
    before = project.epoch
    assert 0 < before < EPOCHS
    done = project.run(*arguments)
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {before}" in done.stderr
    assert project.epoch == EPOCHS
    assert project.output() == undisturbed


def refuses(project: Project, *said: str) -> None:
    """A start ends with 1, says so, and leaves the output alone."""
    before = project.output()
    done = project.run()
    assert done.returncode == 1, done.stderr
    for words in said:
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert project.output() == before


# -- sources ----------------------------------------------------------------------------------------


def test_a_source_file_that_shrank_was_replaced_or_disappeared_is_missed_until_it_is_put_back(
    stopped: Project, undisturbed: Output
) -> None:
    whole = stopped.input.read_text()
    stopped.input.write_text(whole[: len(whole) // 20])
    refuses(stopped, f"readings: {stopped.input} shrank: it was read up to", "put it back", "--fresh")
    stopped.input.write_text(readings(first=1))
    refuses(stopped, f"readings: {stopped.input} was replaced: what is in it up to", "put it back", "--fresh")
    stopped.input.write_text(whole)
    away = stopped.folder / "away"
    with stopped.running() as run:
        run.until_epoch(stopped.epoch + 4)
        stopped.input.rename(away)
        assert run.finish() == 1
        assert f"readings: {stopped.input} disappeared; put it back" in run.errors
        assert "--fresh" in run.errors
        assert "Traceback" not in run.errors
    away.rename(stopped.input)
    goes_on_to_the_end(stopped, undisturbed)


# -- the coordinator --------------------------------------------------------------------------------


def test_a_zookeeper_that_is_not_there_is_named_and_one_that_is_lost_is_waited_for(
    tmp_path: Path, project: Project, undisturbed: Output, zookeeper: ZookeeperServer
) -> None:
    nowhere = ZookeeperServer(tmp_path / "never-started")
    began = time.monotonic()
    absent = project.run(f"--coordinator=zookeeper://{nowhere.hosts}/troubles")
    assert time.monotonic() - began < 30
    assert absent.returncode == 1
    assert f"no ZooKeeper server answers at {nowhere.hosts}" in absent.stderr
    assert "start one there" in absent.stderr
    assert "starting Spark" not in absent.stderr
    with project.running(f"--coordinator=zookeeper://{zookeeper.hosts}/troubles") as run:
        run.until_epoch(4)
        with zookeeper.away():
            lost = time.monotonic()
            run.until(lambda: "ZooKeeper" in str(run.events()[-1].get("waiting")))
            cut = project.epoch
            time.sleep(max(0.0, lost + OUTAGE_SECONDS - time.monotonic()))
            assert project.epoch == cut
        assert run.finish() == 0, run.errors
        assert run.events()[-1]["waiting"] is None
    assert project.epoch == EPOCHS
    assert project.output() == undisturbed


def test_a_coordinator_file_that_another_process_holds_is_waited_for(project: Project, undisturbed: Output) -> None:
    with project.running(as_json=False) as run:
        run.until_epoch(4)
        with locked(project.state / "coordinator.sqlite"):
            held = time.monotonic()
            run.until(lambda: "waiting: the coordinator's file" in run.errors)
            cut = project.epoch
            time.sleep(max(0.0, held + OUTAGE_SECONDS - time.monotonic()))
            assert project.epoch == cut < EPOCHS
        assert run.finish() == 0, run.errors
        assert "waiting" not in run.errors.splitlines()[-2]
    assert project.epoch == EPOCHS
    assert project.output() == undisturbed


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another process holds the database for itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield
        process.stdin.close()
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()


# -- the disk ---------------------------------------------------------------------------------------


@with_own_mounts
def test_a_disk_that_fills_ends_the_run_until_there_is_room_again(tmp_path: Path, undisturbed: Output) -> None:
    with small_disk(tmp_path / "disk", megabytes=32) as disk:
        project = Project.new(disk.folder / "project")
        if disk.refused:
            # Nobody here can have a disk of his own: the one that there is has room, and a run is none the worse.
            assert "run it as root" in disk.refused
            project.stop_after(4)
        else:
            with project.running() as run:
                run.until_epoch(4)
                disk.fill()
                assert run.finish() == 1
                assert "no space left" in run.errors
                assert "Traceback" not in run.errors
            refuses(project, "no space left on the disk of", "free some")
            disk.free()
        goes_on_to_the_end(project, undisturbed)


# -- sinks ------------------------------------------------------------------------------------------


def test_a_table_with_another_schema_is_refused_until_it_is_put_right(tmp_path: Path, undisturbed: Output) -> None:
    project = Project.new(tmp_path / "project", WITH_DATABASE)
    project.stop_after(5)
    change(project, "ALTER TABLE odd RENAME COLUMN sensor TO place")
    refuses(project, "table 'odd' of sqlite:///odd.db does not fit the rows", "no column 'sensor'", "Change the table")
    change(project, "ALTER TABLE odd RENAME COLUMN place TO sensor")
    goes_on_to_the_end(project, {"counts": undisturbed["counts"]})
    with sqlite3.connect(project.folder / "odd.db") as connection:
        rows = connection.execute("SELECT n, sensor FROM odd").fetchall()
    assert sorted(f'{{"n":{n},"sensor":"{sensor}"}}' for n, sensor in rows) == undisturbed["odd"]


def change(project: Project, statement: str) -> None:
    connection = sqlite3.connect(project.folder / "odd.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
