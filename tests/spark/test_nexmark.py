"""The Nexmark queries give what batch SQL gives of the same events, row by row."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.bench.nexmark_answers import ANSWERS, expected, given
from penstock.bench.topologies import topology_file
from penstock.connectors.base import Slice
from penstock.connectors.nexmark import NexmarkEvents
from penstock.connectors.registry import catalogue
from penstock.topology.loading import load_topology

EVENTS = 150_000
"""Fifteen seconds by their own time: more than one window, and more than one epoch."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events as a table, and the file that a query looks things up in."""
    folder = tmp_path_factory.mktemp("nexmark")
    chunks = NexmarkEvents((), count=EVENTS).read(Slice(0, {"begin": 0, "end": EVENTS}))
    pq.write_table(pa.Table.from_batches([chunk.rows for chunk in chunks]), folder / "events.parquet")
    side = folder / "side.csv"
    side.write_text("".join(f"{key},value {key}\n" for key in range(0, 10_000, 3)))
    spark.read.parquet(str(folder / "events.parquet")).createOrReplaceTempView("events")
    spark.read.csv(str(side), schema="key bigint, value string").createOrReplaceTempView("side")
    return side


@pytest.mark.parametrize("query", ANSWERS)
def test_a_query_gives_what_batch_sql_gives(query: str, project: Any, tables: Path) -> None:
    file = shutil.copy(topology_file(f"nexmark-{query}"), project.folder)
    shutil.copy(tables, project.folder)
    sets = {"sources.events.count": str(EVENTS), "epoch.max_tuples": str(EVENTS // 4)}
    topology, problems = load_topology(Path(file), catalogue(), sets)
    assert topology is not None, problems
    assert project.run(topology).ended
    found = given(query, (project.folder / f"out/{query}.jsonl").read_text().splitlines())
    wanted = expected(project.spark, query)
    assert wanted
    assert found == wanted
