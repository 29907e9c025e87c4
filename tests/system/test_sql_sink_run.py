"""A whole topology that writes to PostgreSQL, while the server is killed and restarted."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from penstock.connectors.generator import GeneratorSource

from ..servers.postgresql import PASSWORD, PostgresServer
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK

ROWS = 30_000

TOPOLOGY = """\
topology: disturbed
delivery: exactly-once
epoch: {max_tuples: 500}
sources:
  readings: {generator: {n: sequence, sensor: "choice(kitchen, cellar, roof)"}, count: ROWS, seed: 7}
operators:
  counts: {from: readings, count: sensor}
sinks:
  all:    {from: readings, sql: "postgresql://penstock:${env:PW}@127.0.0.1:PORT/postgres", table: disturbed,
           patience: 120}
  totals: {from: counts, sql: "postgresql://penstock:${env:PW}@127.0.0.1:PORT/postgres", table: disturbed_totals,
           mode: upsert, key: sensor, patience: 120}
"""


def made_rows() -> list[tuple[int, str]]:
    """What the source makes, whoever reads it."""
    columns = (("n", "sequence"), ("sensor", "choice(kitchen, cellar, roof)"))
    source = GeneratorSource(columns, count=ROWS, seed=7)
    end = source.cut(source.start(), ROWS).end
    chunks = [chunk.rows for part in source.slices(source.start(), end, 1) for chunk in source.read(part)]
    return [(row["n"], row["sensor"]) for rows in chunks for row in rows.to_pylist()]


def query(server: PostgresServer, statement: Any) -> list[Any]:
    with psycopg.connect(server.url()) as connection:
        return connection.execute(statement).fetchall()


def wait_for_epoch(server: PostgresServer, epoch: int, alive: Callable[[], bool]) -> None:
    reached = f"SELECT 1 FROM penstock_epochs WHERE topology = 'disturbed' AND sink = 'all' AND epoch >= {epoch}"
    wait_until(
        lambda: query(server, "SELECT to_regclass('penstock_epochs')") != [(None,)] and query(server, reached),
        PATIENCE_SECONDS, alive)


def test_a_server_killed_during_a_run_leaves_every_row_once(tmp_path: Path, postgresql: PostgresServer) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY.replace("PORT", str(postgresql.port)).replace("ROWS", str(ROWS)))
    process = subprocess.Popen([PENSTOCK, "run", "--json"], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PW": PASSWORD})
    try:
        for number, ending in enumerate(("kill", "stop_immediately", "kill")):
            wait_for_epoch(postgresql, 3 + 12 * number, lambda: process.poll() is None)
            getattr(postgresql, ending)()
            postgresql.start()
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said
    assert PASSWORD not in said
    made = made_rows()
    assert len(made) == ROWS
    assert query(postgresql, "SELECT n, sensor FROM disturbed ORDER BY n") == made
    totals = dict(query(postgresql, "SELECT sensor, count FROM disturbed_totals"))
    assert totals == Counter(sensor for _, sensor in made)
