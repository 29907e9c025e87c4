"""Lower a custom operator with a key: its code runs in Spark's stateful operator for Python, `transformWithState`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from penstock.epochs.record import SEQUENCE_BITS
from penstock.errors import TopologyError
from penstock.spark.custom import CustomStage
from penstock.spark.key_columns import KeyColumns
from penstock.spark.keyed_state import KeyedSettings, KeyedTask
from penstock.spark.keyed_worker import StatefulStage, StateFunction
from penstock.spark.late_watermark import late_watermark_of_task
from penstock.spark.numbering import CARRIED, HIDDEN, MARK, SEQUENCE, timed
from penstock.spark.ported_tuples import Ports
from penstock.spark.present_epoch import present_epoch
from penstock.spark.recent_states import FOLDER as RECENT
from penstock.spark.state_access import StateAccess
from penstock.spark.worker_process import settle_in, task_number
from penstock.topology.model import Custom, Operator
from penstock.validation.keyed import NOT_FOR_KEYS

_NOT_SORTABLE = ("map", "variant", "void", "interval")


@dataclass(frozen=True)
class KeyedStage:
    """Everything a worker needs to run one custom operator that has a key."""

    custom: CustomStage
    key: KeyColumns
    carried: tuple[str, ...]
    """Which of the epoch's own columns accompany the tuples."""
    ports: Ports | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch], states: StateAccess) -> Iterator[pa.RecordBatch]:
        settle_in()
        custom = self.custom
        present = present_epoch(Path(custom.state))
        context = custom.context(task_number())
        calls = custom.calls_allowed(present.epoch << SEQUENCE_BITS)
        settings = KeyedSettings(custom.operator, custom.folder, custom.columns, self.key, calls, self.ports)
        ledger = custom.ledger()
        mark = late_watermark_of_task(Path(custom.state)) if MARK in self.carried else None
        with custom.in_folder():
            task = KeyedTask(settings, custom.code(context), context, states, ledger)
            for batch in _all_of(task, batches):
                yield timed(batch, present.time_ms, mark) if self.carried else batch
        if ledger is not None:
            ledger.close(task_number())


def lower_keyed(
    operator: Custom, frame: DataFrame, stage: CustomStage, schema: str, ports: Ports | None = None
) -> DataFrame:
    """What the operator emits for the tuples of `frame`, as rows of `schema`."""
    key = key_columns(operator, operator.key, frame)
    carried = tuple(name for name in CARRIED if name in frame.columns)
    return transformed_with_state(frame, KeyedStage(stage, key, carried, ports), key, schema, stage.state)


def transformed_with_state(
    frame: DataFrame, stage: StatefulStage, key: KeyColumns, schema: str, state: str
) -> DataFrame:
    """What a stage gives for the tuples of `frame`, sorted by key and then in their order, as rows of `schema`.

    `state` is the run's state folder.
    """
    # As Spark divides the state: it would exchange them once more otherwise.
    partitions = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    keys = [F.col(f"`{name}`") for name in key.names]
    # A shuffle delivers tuples in any order. Where one source tuple gave several, the order of their values decides.
    others = [
        F.col(f"`{field.name}`")
        for field in frame.schema.fields
        if field.name not in (*key.names, *HIDDEN) and not field.dataType.simpleString().startswith(_NOT_SORTABLE)
    ]
    ordered = frame.repartition(partitions, *keys).sortWithinPartitions(*keys, SEQUENCE, *others)
    function = UserDefinedFunction(
        StateFunction(stage, _recent(frame, state)),
        returnType=schema,
        evalType=PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF,
    )
    called = function(*(ordered[f"`{name}`"] for name in ordered.columns))
    session = frame.sparkSession
    rows = session._jsparkSession.parseDataType(session._parse_ddl(schema).json())
    # The output mode says nothing here: what the code emits is emitted once. Spark's own clock is never asked for the
    # time, but without it there are no timers.
    grouped = ordered.groupBy(*keys)._jgd
    emitted = grouped.transformWithStateInPySpark(called._jc, rows, "update", "processingTime", None, "")
    return DataFrame(emitted, session)


def _recent(frame: DataFrame, state: str) -> str | None:
    """A folder in which the tasks of one stage hand states on, where they all run on this machine."""
    master = str(frame.sparkSession.sparkContext.master)
    if master != "local" and not master.startswith("local["):
        return None
    return str(Path(state) / RECENT / uuid.uuid4().hex)


def key_columns(operator: Operator, names: Sequence[str], frame: DataFrame) -> KeyColumns:
    """The columns of an operator's key; raises TopologyError where their types make none."""
    by_name = {field.name.lower(): field for field in frame.schema.fields if field.name not in HIDDEN}
    fields = [by_name[name.lower()] for name in names]
    for field in fields:
        kind = field.dataType.simpleString()
        if kind.startswith(NOT_FOR_KEYS):
            where = f"{operator.where}: " if operator.where.line else ""
            raise TopologyError(
                f"{where}operator '{operator.name}': column '{field.name}' is {kind}, which makes no key; "
                "cast it in a select before it"
            )
    return KeyColumns(tuple(field.name for field in fields), tuple(field.dataType.simpleString() for field in fields))


def _all_of(task: KeyedTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from task.give(batch)
    yield from task.finish()
