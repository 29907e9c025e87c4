"""A whole topology that writes to PostgreSQL, while the server is killed and restarted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ..servers.postgresql import PASSWORD, PostgresServer, running_postgresql
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK

TOPOLOGY = """\
topology: NAME
delivery: exactly-once
epoch: {max_tuples: 500}
sources:
  readings: {generator: {n: sequence, sensor: "choice(kitchen, cellar, roof)"}, count: 30000, seed: 7}
operators:
  counts: {from: readings, count: sensor}
sinks:
  all:    {from: readings, sql: "postgresql://penstock:${env:PW}@127.0.0.1:PORT/postgres", table: NAME, patience: 120}
  totals: {from: counts, sql: "postgresql://penstock:${env:PW}@127.0.0.1:PORT/postgres", table: NAME_totals,
           mode: upsert, key: sensor, patience: 120}
"""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgresql() as running:
        yield running


def start(folder: Path, name: str, server: PostgresServer) -> subprocess.Popen[str]:
    own = folder / name
    own.mkdir()
    (own / "topology.yaml").write_text(TOPOLOGY.replace("NAME", name).replace("PORT", str(server.port)))
    return subprocess.Popen([PENSTOCK, "run", "--json"], cwd=own, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PW": PASSWORD})


def finish(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, said
    assert PASSWORD not in said


def query(server: PostgresServer, statement: Any) -> list[Any]:
    with psycopg.connect(server.url()) as connection:
        return connection.execute(statement).fetchall()


def wait_for_epoch(server: PostgresServer, topology: str, epoch: int, alive: Callable[[], bool]) -> None:
    reached = f"SELECT 1 FROM penstock_epochs WHERE topology = '{topology}' AND sink = 'all' AND epoch >= {epoch}"
    wait_until(
        lambda: query(server, "SELECT to_regclass('penstock_epochs')") != [(None,)] and query(server, reached),
        PATIENCE_SECONDS, alive)


def test_a_server_killed_during_a_run_leaves_the_tables_of_an_undisturbed_run(
    tmp_path: Path, server: PostgresServer
) -> None:
    finish(start(tmp_path, "undisturbed", server))
    process = start(tmp_path, "disturbed", server)
    try:
        for number, ending in enumerate(("kill", "stop_immediately", "kill")):
            wait_for_epoch(server, "disturbed", 3 + 12 * number, lambda: process.poll() is None)
            getattr(server, ending)()
            server.start()
        finish(process)
    finally:
        process.kill()
        process.wait()
    for table, rows in (("", 30000), ("_totals", 3)):
        undisturbed, disturbed = (query(server, f"SELECT * FROM {name}{table} ORDER BY 1, 2")
                                  for name in ("undisturbed", "disturbed"))
        assert len(undisturbed) == rows
        assert disturbed == undisturbed
