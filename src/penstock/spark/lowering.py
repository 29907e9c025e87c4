"""Lower the plan's steps to DataFrames. Built-in operators become native Spark expressions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.connectors.base import SinkConnector
from penstock.epochs.record import SEQUENCE_BITS
from penstock.errors import TopologyError
from penstock.plan.comparing import compared_steps
from penstock.plan.counting import counts_needed
from penstock.plan.graph import Acker, Apply, Exchange, Gather, Merge, Plan, Port, Read, Share, Step, Write
from penstock.plan.rounding import may_be_rounded
from penstock.spark.arrow_stage import Stage, is_narrow, map_batches
from penstock.spark.carried_time import CarriedTime
from penstock.spark.count_windows import lower_count_window
from penstock.spark.custom import INSTANCE, PORT, CustomStage
from penstock.spark.digests import can_be_rounded, with_digest
from penstock.spark.emitted import port_column
from penstock.spark.enrichments import lower_enrich
from penstock.spark.epoch_source import FORMAT, SEQUENCE
from penstock.spark.input_ports import (
    frames_by_port,
    lower_gather,
    ported_stage,
    ports_of,
    routing_columns,
    with_fields,
)
from penstock.spark.joins import lower_join
from penstock.spark.keyed_stage import lower_keyed
from penstock.spark.numbering import CARRIED, HIDDEN, MARK, TIME
from penstock.spark.read_settings import ReadSettings
from penstock.spark.rows_made import NUMBERS, tuples_of
from penstock.spark.self_acking import emits_with_unacked
from penstock.spark.staging import align, tagged_rows
from penstock.spark.tuple_counts import with_count
from penstock.spark.unacked import NAME as UNACKED_TUPLES
from penstock.spark.unacked import TREE, UnackedTuples
from penstock.spark.windows import lower_window
from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Explode,
    Filter,
    Operator,
    RouteKind,
    Select,
    Union,
    Uniq,
)
from penstock.topology.schema import Field, Schema
from penstock.topology.window import Window as TimeWindow

_EVERYTHING = "__everything"


@dataclass
class Lowering:
    """What lowering needs to know, and the DataFrames made so far."""

    spark: SparkSession
    plan: Plan
    settings: ReadSettings
    sinks: dict[str, SinkConnector]
    metrics: bool = True
    """Whether operators count their tuples; it costs a few milliseconds an epoch each."""
    digests: bool = False
    """Whether replicas compare what operators give and what sinks receive; see `plan.comparing`."""
    frames: dict[str, DataFrame] = field(default_factory=dict)
    code: dict[str, tuple[DataFrame, Stage, Schema]] = field(default_factory=dict)
    """By operator, custom code without a key: what it is given, and what runs it."""
    rounded: dict[str, frozenset[str]] = field(default_factory=dict)
    """By step, where replicas compare: the columns that may differ in their last digits."""
    narrow: bool = True
    """Whether all rows that go to Python are; see `arrow_stage.limit_batches`."""

    @cached_property
    def counted(self) -> frozenset[str]:
        return counts_needed(self.plan)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The steps at which replicas compare."""
        return frozenset(compared_steps(self.plan) if self.digests else ())

    @property
    def parallelism(self) -> int:
        return self.settings.parallelism

    @property
    def state_partitions(self) -> int:
        """Into how many parts all state is divided."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or self.parallelism)


def lower_plan(lowering: Lowering) -> DataFrame:
    """One DataFrame with the tagged rows of all sinks: the whole topology as one streaming query."""
    written: dict[str, DataFrame] = {}
    for step in lowering.plan.steps:
        try:
            frame = lower_step(step, lowering)
        except Exception as error:
            raise _in_user_terms(step, error) from error
        lowering.frames[step.id] = frame
        if lowering.digests and step.id not in lowering.rounded:
            lowering.rounded[step.id] = _rounded(step, frame, lowering)
        if isinstance(step, Write):
            written[step.sink.name] = frame
        elif isinstance(step, Acker):
            written[UNACKED_TUPLES] = frame
    first, *others = align(written)
    for other in others:
        first = first.union(other)
    return first


@singledispatch
def lower_step(step: Step, lowering: Lowering) -> DataFrame:
    raise TypeError(f"no lowering for {type(step).__name__}")


@lower_step.register
def _(step: Read, lowering: Lowering) -> DataFrame:
    made = lowering.settings.made_natively(step.source)
    if made is None:
        return _read(step, f"{lowering.settings.connector(step.source).schema().ddl}, {SEQUENCE} bigint", lowering)
    return tuples_of(_read(step, NUMBERS, lowering), made)


def _read(step: Read, columns: str, lowering: Lowering) -> DataFrame:
    reader = lowering.spark.readStream.format(FORMAT).schema(f"{columns}{_carried(lowering)}")
    return reader.option("settings", lowering.settings.to_json()).option("source", step.source.name).load()


@lower_step.register
def _(step: Merge, lowering: Lowering) -> DataFrame:
    first, *others = (lowering.frames[name] for name in step.inputs)
    for other in others:
        first = first.unionByName(other)
    return first


@lower_step.register
def _(step: Gather, lowering: Lowering) -> DataFrame:
    return lower_gather(step, lowering)


@lower_step.register
def _(step: Exchange, lowering: Lowering) -> DataFrame:
    frame = lowering.frames[step.input]
    gathered = lowering.plan.step(step.input)
    number = step.parallelism or lowering.parallelism
    match step.route.kind:
        case RouteKind.SHUFFLE:
            return frame.repartition(number)
        case RouteKind.HASH:
            if isinstance(gathered, Gather):
                return frame.repartition(number, *routing_columns(gathered, step.route.fields))
            return frame.repartition(number, *step.route.fields)
        case RouteKind.GLOBAL:
            # repartition(1) would be optimised into a coalesce and take the parallelism before it along.
            return frame.repartition(1, F.lit(0))
        case RouteKind.ALL:
            everywhere = F.explode(F.sequence(F.lit(0), F.lit(number - 1))).alias(INSTANCE)
            copied = frame.select("*", everywhere)
            return copied.repartitionById(number, F.col(INSTANCE)).drop(INSTANCE)
        case RouteKind.LOCAL:
            return frame


@lower_step.register
def _(step: Share, lowering: Lowering) -> DataFrame:
    """Compute what lies before once, however many branches follow.

    Spark reuses an exchange only when both plans below it are equal, and its optimiser makes them differ
    by pushing each branch's filters and columns below the exchange. It pushes no filter through observed
    metrics, and no column that they mention: one that mentions every column is a barrier.
    """
    frame = lowering.frames[step.input]
    exchanged = frame.repartition(lowering.parallelism)
    return exchanged.observe(f"{step.id}|barrier", F.first(F.struct("*")).alias("sample"))


@lower_step.register
def _(step: Port, lowering: Lowering) -> DataFrame:
    frame = lowering.frames[step.input]
    if PORT not in frame.columns:
        # The only one there is has all tuples.
        return frame
    ports = [name for name in frame.columns if name not in (PORT, *HIDDEN)]
    column = port_column(step.name)
    chosen = frame.where(F.col(PORT) == ports.index(column))
    return chosen.select(f"`{column}`.*", *_hidden_of(frame))


@lower_step.register
def _(step: Apply, lowering: Lowering) -> DataFrame:
    if isinstance(step.operator, Join):
        frame = lower_join(step.operator, frames_by_port(step, lowering), lowering)
    else:
        frame = lower_operator(step.operator, lowering.frames[step.input], lowering)
    frame = _compared(step, frame, lowering)
    if lowering.metrics and step.operator.name in lowering.counted:
        return with_count(frame, step.operator, step.operator.name in lowering.plan.self_acking)
    return frame


@lower_step.register
def _(step: Write, lowering: Lowering) -> DataFrame:
    frame = lowering.frames[step.input].drop(*HIDDEN)
    lowering.narrow &= is_narrow(frame.schema)
    lowering.sinks[step.sink.name] = lowering.sinks[step.sink.name].with_columns(tuple(frame.columns))
    return tagged_rows(_compared(step, frame, lowering), step.sink.name, lowering.sinks)


@lower_step.register
def _(step: Acker, lowering: Lowering) -> DataFrame:
    """The tuples of trees that are not complete: those for which the ids that are left do not cancel out.

    A window and no grouping: a tree is decided within its epoch, and a grouping would remember it for ever.
    """
    first, *others = (lowering.frames[name] for name in step.inputs)
    for other in others:
        first = first.unionByName(other)
    left = F.bit_xor("ack").over(Window.partitionBy(SEQUENCE))
    lowering.narrow = False
    incomplete = first.withColumn("ack", left).where("ack <> 0")
    rows = incomplete.select("operator", "tuple", F.col(SEQUENCE).alias(TREE))
    taker = UnackedTuples.of(lowering.plan.topology, Path(lowering.settings.state))
    return tagged_rows(rows, UNACKED_TUPLES, {**lowering.sinks, UNACKED_TUPLES: taker})


def _compared(step: Step, frame: DataFrame, lowering: Lowering) -> DataFrame:
    """What the step gives, observed where replicas compare it."""
    if step.id not in lowering.compared:
        return frame
    lowering.rounded[step.id] = _rounded(step, frame, lowering)
    return with_digest(frame, step.id, lowering.rounded[step.id])


def _rounded(step: Step, frame: DataFrame, lowering: Lowering) -> frozenset[str]:
    given = frozenset(name for read in step.reads() for name in lowering.rounded[read])
    adds = isinstance(step, Apply) and isinstance(step.operator, TimeWindow)
    if isinstance(step, Gather) or not (given or adds):
        return given
    return frozenset(
        item.name
        for item in frame.schema.fields
        if item.name not in HIDDEN and can_be_rounded(item.dataType) and may_be_rounded(step, item.name, given)
    )


@singledispatch
def lower_operator(operator: Operator, frame: DataFrame, lowering: Lowering) -> DataFrame:
    raise TypeError(f"no lowering for operator kind '{operator.keyword}'")


@lower_operator.register
def _(operator: Filter, frame: DataFrame, lowering: Lowering) -> DataFrame:
    return frame.where(operator.condition)


@lower_operator.register
def _(operator: Select, frame: DataFrame, lowering: Lowering) -> DataFrame:
    # Of a bare `*` Spark would take our own columns for the user's, and have them twice.
    visible = [f"`{name}`" for name in frame.columns if name not in HIDDEN]
    columns = itertools.chain.from_iterable(visible if text.strip() == "*" else [text] for text in operator.columns)
    return frame.selectExpr(*columns, *_hidden_of(frame))


@lower_operator.register
def _(operator: Explode, frame: DataFrame, lowering: Lowering) -> DataFrame:
    kept = [f"`{name}`" for name in frame.columns if name not in (operator.alias, *HIDDEN)]
    return frame.selectExpr(*kept, f"explode({operator.expression}) as `{operator.alias}`", *_hidden_of(frame))


@lower_operator.register
def _(operator: Dup, frame: DataFrame, lowering: Lowering) -> DataFrame:
    return frame


@lower_operator.register
def _(operator: Union, frame: DataFrame, lowering: Lowering) -> DataFrame:
    return frame


@lower_operator.register
def _(operator: Uniq, frame: DataFrame, lowering: Lowering) -> DataFrame:
    # A shuffle delivers rows in any order: sorted by sequence, the first tuple of a key is the first one,
    # and where one source tuple gave several, the order of their values decides.
    order = [SEQUENCE, *(name for name in frame.columns if name != SEQUENCE)]
    # As many parts as the state has: otherwise Spark divides once more, after the sort, and the order is lost.
    divided = frame.repartition(lowering.state_partitions, *operator.keys)
    return divided.sortWithinPartitions(*order).dropDuplicates(list(operator.keys))


@lower_operator.register
def _(operator: Count, frame: DataFrame, lowering: Lowering) -> DataFrame:
    if operator.emit == "each":
        return _count_each(operator, frame)
    counted = frame.groupBy(*_grouping(operator)).agg(
        F.count(F.lit(1)).alias("count"), *(F.max(name).alias(name) for name in _hidden_of(frame))
    )
    return counted.drop(_EVERYTHING)


def _grouping(operator: Count) -> list[Column]:
    """The key; without one a constant, because a count over no key at all speaks up in empty epochs too."""
    return [F.col(f"`{key}`") for key in operator.keys] or [F.lit(0).alias(_EVERYTHING)]


def _count_each(operator: Count, frame: DataFrame) -> DataFrame:
    """Every number counted through: the total so far, and how many of it are this epoch's.

    All tuples of a key in one epoch carry the same pair (epoch, how many); the largest pair in the
    state is that of the newest epoch.
    """
    keys = _grouping(operator)
    numbered = frame.withColumn("__many", F.count(F.lit(1)).over(Window.partitionBy(*keys)))
    epoch = F.shiftright(F.col(SEQUENCE), SEQUENCE_BITS)
    counted = numbered.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("__total"),
        F.max(F.struct(epoch.alias("epoch"), F.col("__many").alias("many"))).alias("__newest"),
        *(F.max(name).alias(name) for name in _hidden_of(frame)),
    )
    first = F.col("__total") - F.col("__newest.many") + 1
    number = F.explode(F.sequence(first, F.col("__total"))).alias("count")
    return counted.select(*(F.col(f"`{key}`") for key in operator.keys), number, *_hidden_of(frame))


@lower_operator.register
def _(operator: Enrich, frame: DataFrame, lowering: Lowering) -> DataFrame:
    return lower_enrich(operator, frame, lowering)


@lower_operator.register
def _(operator: TimeWindow, frame: DataFrame, lowering: Lowering) -> DataFrame:
    if operator.counts_tuples:
        return lower_count_window(operator, frame, lowering)
    return lower_window(operator, frame, lowering)


@lower_operator.register
def _(operator: Custom, frame: DataFrame, lowering: Lowering) -> DataFrame:
    columns = tuple(name for name in frame.columns if name not in HIDDEN)
    lowering.narrow &= is_narrow(frame.schema)
    settings = lowering.settings
    acks = operator.name in lowering.plan.self_acking
    ack_timeout = lowering.plan.topology.ack_timeout if acks else None
    kept = _kept(operator, frame)
    stage = CustomStage(
        settings.run, operator, settings.folder, columns, settings.state, ack_timeout, settings.topology, kept.names
    )
    emits = emits_with_unacked(operator) if acks else operator.emits
    if len(emits) == 1:
        output = f"{Schema((*kept.fields, *emits[0][1].fields)).ddl}, {_hidden(lowering)}"
    else:
        structs = ", ".join(
            f"`{port_column(port)}` struct<{', '.join(f'`{item.name}`: {item.type}' for item in schema.fields)}>"
            for port, schema in emits
        )
        output = f"{PORT} int, {structs}, {_hidden(lowering)}"
    ports = ports_of(frame) if operator.input_ports else None
    if operator.key:
        keyed = frame if ports is None else with_fields(frame, ports, operator.key)
        return lower_keyed(operator, keyed, stage, output, ports)
    inner = stage if ports is None else ported_stage(stage, ports)
    columns_carried = tuple(name for name in CARRIED if name in frame.columns)
    carried = CarriedTime(inner, columns_carried) if columns_carried else inner
    given = frame.withColumn(INSTANCE, F.spark_partition_id())
    if len(emits) == 1:
        lowering.code[operator.name] = given, carried, Schema((*kept.fields, *emits[0][1].fields))
    return map_batches(given, carried, output)


def _kept(operator: Custom, frame: DataFrame) -> Schema:
    """The columns that go past the code, by their own names, whatever case they are written in."""
    found = {field.name.lower(): Field(field.name, _type_of(field.dataType)) for field in frame.schema
             if field.name not in HIDDEN}
    # A source that tells its columns only now is not known to the validation.
    missing = [name for name in operator.keep if name.lower() not in found]
    if missing:
        read = ", ".join(field.name for field in found.values())
        subject = f"{operator.where}: operator '{operator.name}'"
        raise TopologyError(f"{subject}: no column '{missing[0]}' to keep; it reads {read}")
    return Schema(tuple(found[name.lower()] for name in operator.keep))


def _type_of(kind: DataType) -> str:
    """A type as Spark reads it in a schema; its own `simpleString` quotes no names."""
    match kind:
        case StructType():
            fields = (f"`{each.name.replace('`', '``')}`: {_type_of(each.dataType)}" for each in kind)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{_type_of(kind.elementType)}>"
        case MapType():
            return f"map<{_type_of(kind.keyType)}, {_type_of(kind.valueType)}>"
        case _:
            return kind.simpleString()


def _hidden(lowering: Lowering) -> str:
    """The columns of ours that accompany the tuples, as Spark reads a schema."""
    return f"{SEQUENCE} bigint{_carried(lowering)}"


def _carried(lowering: Lowering) -> str:
    settings = lowering.settings
    return (f", {TIME} timestamp" if settings.timed else "") + (f", {MARK} bigint" if settings.marked else "")


def _hidden_of(frame: DataFrame) -> list[str]:
    return [name for name in HIDDEN if name in frame.columns]


def _in_user_terms(step: Step, error: Exception) -> Exception:
    """A mistake that only Spark's analysis finds, told of the operator and its line."""
    node = getattr(step, "operator", None) or getattr(step, "source", None) or getattr(step, "sink", None)
    if isinstance(error, TopologyError) or node is None or type(error).__module__.split(".")[0] != "pyspark":
        return error
    said = str(error).split(" SQLSTATE")[0].splitlines()[0]
    where = f"{node.where}: " if node.where.line else ""
    return TopologyError(f"{where}'{node.name}': {said}")
