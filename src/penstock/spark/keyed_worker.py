"""Have Spark's Python workers hand whole Arrow batches, and the states of all their keys, to our own code.

For a function given to `transformWithState` a worker would take the batches apart, row by row and key by key, and ask
the state server for one thing at a time. `install`, called where workers are forked from (`spark.daemon`), makes a
worker that meets a `StateFunction` leave all of that to it. Every other function goes Spark's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.util import PythonEvalType

from penstock.spark.present_epoch import present_batch, present_run
from penstock.spark.recent_states import Recent, RecentStates
from penstock.spark.state_access import STATE, SparkStates, StateAccess
from penstock.spark.state_socket import Phase, StateSocket, check_done, declare_value, enter_phase
from penstock.spark.worker_process import task_number

_SCHEMA = '{"type":"struct","fields":[{"name":"bytes","type":"binary","nullable":true,"metadata":{}}]}'

StatefulStage = Callable[[Iterator[pa.RecordBatch], StateAccess], Iterator[pa.RecordBatch]]
"""Runs over the batches of one task, sorted by key, and asks for and changes the states of the keys."""


@dataclass(frozen=True)
class StateFunction:
    """What Spark pickles and takes to its workers."""

    stage: StatefulStage
    recent: str | None = None
    """A folder of its own in which tasks hand states on, see `recent_states`; None where they must not."""

    def __call__(self, client: Any, mode: Any, key: Any, rows: Any) -> Iterator[Any]:
        """Spark calls this once on the driver, to learn which state there is.

        A worker calls it only when it was not forked by Penstock's daemon.
        """
        if mode.name != "PRE_INIT":
            raise RuntimeError(
                "keyed state needs Penstock's own workers: remove the settings spark.python.daemon.module and "
                "spark.python.use.daemon"
            )
        check_done(StateSocket(client._client_socket).exchange([enter_phase(Phase.PLANNING), _declare()]))
        return iter(())

    def run(self, batches: Iterator[pa.RecordBatch], server: StateSocket) -> Iterator[pa.RecordBatch]:
        """What the stage gives for the batches of a task, each as the one struct column that Spark expects."""
        check_done(server.exchange([_declare(), enter_phase(Phase.INITIALIZED)]))
        stored = SparkStates(server)
        handed_on = None if self.recent is None else RecentStates(stored, _recent_of_task(Path(self.recent)))
        for batch in self.stage(batches, handed_on or stored):
            whole = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
            yield pa.RecordBatch.from_arrays([whole], names=["_0"])
        check_done(server.exchange([enter_phase(Phase.CLOSED)]))
        if handed_on is not None:
            handed_on.leave()


def _recent_of_task(folder: Path) -> Recent:
    return Recent(folder, present_run(), task_number(), present_batch())


def _declare() -> bytes:
    return declare_value(STATE, _SCHEMA)


def install() -> None:
    """Call it once in the process that forks workers."""
    from pyspark import worker

    read_udfs: Any = worker.read_udfs

    def read_ours_or_theirs(pickler: Any, functions: Any, kind: int, runner: Any, settings: Any) -> Any:
        if kind == PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF:
            function, _ = worker.read_command(pickler, functions[0].udfs[0])  # type: ignore[attr-defined]
            if isinstance(function, StateFunction):
                serializer = ArrowStreamSerializer(write_start_stream=True)

                def run(_: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                    return function.run(batches, StateSocket.connect(settings.state_server_socket_port))

                return run, None, serializer, serializer
        return read_udfs(pickler, functions, kind, runner, settings)

    worker.read_udfs = read_ours_or_theirs
