"""Spark for a command that works on a checkpoint, and not for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock.runtime.run import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.spark.session import SessionSettings, start_session


@contextmanager
def tool_session(
    name: str, state: StateFolder, run: RunSettings, lock: int | None, say: Callable[[str], None]
) -> Iterator[SparkSession]:
    """A session for the time of the block. It keeps the lock, so that nobody comes in while a killed JVM ends."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    say("starting Spark")
    spark = start_session(SessionSettings(name, run.master, state.logs / "tools", 1, run.memory, run.spark, lock))
    try:
        yield spark
    finally:
        spark.stop()
