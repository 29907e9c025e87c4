"""The Yahoo streaming benchmark gives what batch SQL gives of the same events, row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.nexmark_answers import counted
from penstock.bench.workloads import workload, write_tables
from penstock.connectors.base import Place, Slice
from penstock.connectors.registry import source_connector

EVENTS = 250_000
"""Twenty-five seconds by their own time: three windows, and several epochs."""

ANSWER = """
    SELECT campaign, CAST(window.start AS STRING) AS window_start, count(*) AS views
    FROM seen JOIN ads USING (ad) WHERE event = 'view' GROUP BY campaign, window(at, '10 seconds')"""


def test_the_views_of_every_campaign_are_what_batch_sql_counts(project: Any) -> None:
    write_tables(project.folder)
    topology = workload("yahoo").topology(project.folder, EVENTS)
    (source,) = topology.sources
    events = source_connector(source, Place("yahoo", source.name, project.folder))
    rows = pa.Table.from_batches([chunk.rows for chunk in events.read(Slice(0, {"begin": 0, "end": EVENTS}))])
    pq.write_table(rows, project.folder / "events.parquet")
    spark = project.spark
    spark.read.parquet(str(project.folder / "events.parquet")).createOrReplaceTempView("seen")
    spark.read.csv(str(project.folder / "ads.csv"), schema="ad int, campaign int").createOrReplaceTempView("ads")
    answer = [row.asDict() for row in spark.sql(ANSWER).collect()]

    assert project.run(topology).ended
    given = project.json_lines("out/views.jsonl")
    assert sum(row["views"] for row in given) == sum(event.as_py() == "view" for event in rows.column("event"))
    assert len(answer) == 3 * 100
    assert seconds_of(given) == seconds_of(answer)


def seconds_of(rows: Any) -> Counter[str]:
    return counted({"campaign": row["campaign"], "views": row["views"],
                    "second": str(row["window_start"])[:19].replace("T", " ")} for row in rows)  # fmt: skip
