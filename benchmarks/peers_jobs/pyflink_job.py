"""PyFlink: SQL in a local mini cluster, exactly once. `pyflink_job.py WORK`.

What the project's guide to tuning advises is on: mini-batches, aggregation in two phases, reused objects. State is on
the heap, and a checkpoint of it is kept on disk every second. Counts are a stream of changes, which SQL's own file sink
does not take; the DataStream API's does, in the JVM, exactly once.

The clock runs from the hand-over of the job to a JVM that has run it before with less input, to the end of the job.
Each job of PyFlink's starts Python processes anew: where there is a Python function, the clock runs from when it is
ready.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from work import (
    AMOUNTS,
    CHECKPOINT_SECONDS,
    JVM_MEMORY,
    LETTERS,
    PARALLELISM,
    STEP,
    USERS,
    WORD_BYTES,
    Work,
    read_work,
    report,
)

os.environ.setdefault("JVM_ARGS", f"-Xmx{JVM_MEMORY}")

from pyflink.common import Configuration, Encoder, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, RollingPolicy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.udf import FunctionContext, ScalarFunction, udf

WORD = f"REPEAT(CHR(CAST(97 + MOD(id * {STEP}, {len(LETTERS)}) AS INT)), {WORD_BYTES})"
WORD_COUNT = f"SELECT word, COUNT(*) FROM (SELECT {WORD} AS word FROM numbers) GROUP BY word"
STATELESS = f"""
    SELECT id FROM (SELECT * FROM (SELECT id, {WORD} AS payload FROM numbers) WHERE CHAR_LENGTH(payload) > 0)
    WHERE payload <> ''"""
TOTAL = f"SELECT id, total(MOD(id * {STEP}, {USERS}), MOD(id, {AMOUNTS})) FROM numbers"
JSON = """
    SELECT `user`, kind, COUNT(*) FROM (
      SELECT `user`, UPPER(kind) AS kind, price * 1.23 AS gross FROM events WHERE price > 10
    ) GROUP BY `user`, kind"""


class Total(ScalarFunction):
    """Works on numbers, and on pandas' columns of them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, _: FunctionContext) -> None:
        (Path(self._folder) / f"ready-{os.getpid()}-{time.monotonic_ns()}").write_text(str(time.monotonic()))

    def eval(self, user, amount):  # type: ignore[no-untyped-def]
        return user * 100 + amount


def settings(work: Work) -> dict[str, str]:
    told = {
        "parallelism.default": str(PARALLELISM),
        "execution.checkpointing.interval": f"{CHECKPOINT_SECONDS} s",
        "execution.checkpointing.dir": (work.folder / "checkpoints").as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "state.backend.type": "hashmap",
        # A job that fails is to say so, and not to be tried again for ever.
        "restart-strategy.type": "none",
        "pipeline.object-reuse": "true",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": f"{CHECKPOINT_SECONDS} s",
        "table.exec.mini-batch.size": "50000",
        "table.optimizer.agg-phase-strategy": "TWO_PHASE",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        # With two tasks it was faster than threads in the JVM (185 K/s, and not 162).
        "python.execution-mode": "process",
    }
    newest = newest_checkpoint(work.folder / "checkpoints")
    if newest is not None:
        told["execution.state-recovery.path"] = newest.as_uri()
    return told


def newest_checkpoint(folder: Path) -> Path | None:
    """A whole one: its description is written last."""
    whole = [path.parent for path in folder.glob("*/chk-*/_metadata")]
    return max(whole, key=lambda path: path.stat().st_mtime, default=None)


class Job:
    """One job, in an environment of its own."""

    def __init__(self, work: Work) -> None:
        self._work = work
        configuration = Configuration()
        for key, value in settings(work).items():
            configuration.set_string(key, value)
        self._environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        self._tables = StreamTableEnvironment.create(self._environment)

    def run(self) -> float:
        began = time.monotonic()
        if self._work.job == "json":
            self._read_events()
            self._write_changes(JSON)
        elif self._work.job == "recovery":
            self._make_numbers_in_time()
            self._write_changes(WORD_COUNT)
        elif self._work.job == "word-count":
            self._make_numbers()
            self._write_changes(WORD_COUNT)
        elif self._work.job == "stateless":
            self._make_numbers()
            self._write_rows(STATELESS, "id BIGINT")
        else:
            self._make_numbers()
            kind = "general" if self._work.job == "function" else "pandas"
            function = udf(Total(str(self._work.folder)), result_type=DataTypes.BIGINT(), func_type=kind)
            self._tables.create_temporary_function("total", function)
            self._write_rows(TOTAL, "id BIGINT, total BIGINT")
        ready = [float(file.read_text()) for file in self._work.folder.glob("ready-*")]
        return time.monotonic() - min(ready, default=began)

    def _make_numbers(self) -> None:
        source = NumberSequenceSource(0, self._work.tuples - 1)
        numbers = self._environment.from_source(
            source, WatermarkStrategy.no_watermarks(), "numbers", type_info=Types.LONG())
        self._tables.create_temporary_view("numbers", self._tables.from_data_stream(numbers).alias("id"))

    def _make_numbers_in_time(self) -> None:
        self._tables.execute_sql(f"""
            CREATE TEMPORARY TABLE numbers (id BIGINT) WITH (
              'connector' = 'datagen', 'rows-per-second' = '{self._work.rate}', 'fields.id.kind' = 'sequence',
              'fields.id.start' = '0', 'fields.id.end' = '{self._work.tuples - 1}')""")

    def _read_events(self) -> None:
        self._tables.execute_sql(f"""
            CREATE TEMPORARY TABLE events (
              id BIGINT, `user` STRING, kind STRING, page STRING, price DOUBLE, note STRING
            ) WITH ('connector' = 'filesystem', 'path' = '{self._work.input}', 'format' = 'json')""")

    def _write_rows(self, query: str, columns: str) -> None:
        self._tables.execute_sql(f"""
            CREATE TEMPORARY TABLE results ({columns})
            WITH ('connector' = 'filesystem', 'path' = '{self._work.out}', 'format' = 'csv')""")
        self._tables.execute_sql(f"INSERT INTO results {query}").wait()

    def _write_changes(self, query: str) -> None:
        """Each as `+U[word, count]`, in files that are seen once a checkpoint holds them."""
        changes = self._tables.to_changelog_stream(self._tables.sql_query(query))
        sink = FileSink.for_row_format(str(self._work.out), Encoder.simple_string_encoder())
        policy = RollingPolicy.on_checkpoint_rolling_policy()
        changes.sink_to(sink.with_rolling_policy(policy).build())
        self._environment.execute(self._work.job)


def main() -> None:
    work = read_work(sys.argv[1])
    work.folder.mkdir(parents=True, exist_ok=True)
    if work.rate is None:
        less = work.warm_up()
        less.folder.mkdir()
        Job(less).run()
    report(Job(work).run())


if __name__ == "__main__":
    main()
