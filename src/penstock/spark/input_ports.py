"""Tuples of several input ports on their way to one custom operator: gathered into one stream, and told apart again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.plan.graph import Apply, Gather
from penstock.spark.arrow_stage import Stage
from penstock.spark.custom import INSTANCE, CustomStage
from penstock.spark.emitted import Emitted, Misfit, fitting_batches, port_meant
from penstock.spark.faults import WorkerFault
from penstock.spark.mistakes import Storyteller, who
from penstock.spark.numbering import HIDDEN, SEQUENCE
from penstock.spark.ported_tuples import NUMBER, PREFIX, Ports, parts_of
from penstock.spark.tuples import rows_of
from penstock.spark.watchdog import Hung, watch
from penstock.topology.join import Join

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering



def lower_gather(step: Gather, lowering: Lowering) -> DataFrame:
    """The tuples of all ports in one frame. A join takes them apart anyway, so nothing is done for it."""
    frames = {port: lowering.frames[name] for port, name in zip(step.ports, step.inputs, strict=True)}
    readers = lowering.plan.readers(step.id)
    if any(isinstance(reader, Apply) and isinstance(reader.operator, Join) for reader in readers):
        return next(iter(frames.values()))
    packed = {port: _packed(frame, port) for port, frame in frames.items()}
    empty = {port: F.lit(None).cast(frame.schema[0].dataType).alias(PREFIX + port) for port, frame in packed.items()}
    tagged = [
        frame.select(
            F.lit(number).alias(NUMBER),
            *(F.col(f"`{PREFIX}{each}`") if each == port else empty[each] for each in frames),
            *_hidden_of(frame),
        )
        for number, (port, frame) in enumerate(packed.items())
    ]
    first, *others = tagged
    for other in others:
        first = first.union(other)
    return first


def routing_columns(step: Gather, fields: Sequence[str]) -> list[Column]:
    """By what a route divides gathered tuples: the fields of the port that each comes from."""
    return [_of_own_port(step.ports, name) for name in fields]


def frames_by_port(step: Apply, lowering: Lowering) -> dict[str, DataFrame]:
    """The frame of each port of an operator that has them apart."""
    gather = lowering.plan.step(step.input)
    assert isinstance(gather, Gather)
    return {port: lowering.frames[name] for port, name in zip(gather.ports, gather.inputs, strict=True)}


def ported_stage(stage: CustomStage, ports: Ports) -> Stage:
    """The stage of an operator over a frame that `lower_gather` made."""
    return SynchronousStage(stage, ports) if stage.operator.synchronous else PortedStage(stage, ports)


def ports_of(frame: DataFrame) -> Ports:
    """The ports of a frame that `lower_gather` made."""
    return {
        field.name.removeprefix(PREFIX): tuple(field.dataType.names)
        for field in frame.schema.fields
        if isinstance(field.dataType, StructType) and field.name.startswith(PREFIX)
    }


def with_fields(frame: DataFrame, ports: Ports, fields: Sequence[str]) -> DataFrame:
    """Gathered tuples with some of their own fields beside them, which every port has."""
    return frame.select("*", *(_of_own_port(ports, name).alias(name) for name in fields))


def _of_own_port(ports: Iterable[str], name: str) -> Column:
    return F.coalesce(*(F.col(f"`{PREFIX}{port}`.`{name}`") for port in ports))


def _hidden_of(frame: DataFrame) -> list[str]:
    return [name for name in HIDDEN if name in frame.columns]


def _packed(frame: DataFrame, port: str) -> DataFrame:
    whole = F.struct(*(F.col(f"`{name}`") for name in frame.columns if name not in HIDDEN))
    return frame.select(whole.alias(PREFIX + port), *_hidden_of(frame))


@dataclass(frozen=True)
class PortedStage:
    """Runs a custom operator over the tuples of its ports, one port after the other in each batch."""

    stage: CustomStage
    ports: Ports

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.stage.running() as ledger:
            for batch in batches:
                for port, part in parts_of(batch, self.ports):
                    context = self.stage.context(part.column(INSTANCE)[0].as_py())
                    context.port = port
                    yield from replace(self.stage, columns=self.ports[port]).run_batch(part, context, ledger)


@dataclass(frozen=True)
class SynchronousStage:
    """Calls `process_epoch` once, with all tuples that a task has of each port."""

    stage: CustomStage
    ports: Ports

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: dict[str, list[tuple[int, Any]]] = {port: [] for port in self.ports}
        instance = 0
        for batch in batches:
            for port, part in parts_of(batch, self.ports):
                instance = part.column(INSTANCE)[0].as_py()
                rows[port] += zip(part.column(SEQUENCE).to_pylist(), rows_of(part, self.ports[port]), strict=True)
        if not any(rows.values()):
            return
        with self.stage.running():
            yield from self._process(rows, instance)

    def _process(self, rows: Mapping[str, list[tuple[int, Any]]], instance: int) -> list[pa.RecordBatch]:
        operator = self.stage.operator
        latest = max(sequence for of_port in rows.values() for sequence, _ in of_port)
        context = self.stage.context(instance)
        context.seeded_by(lambda: latest)
        bolt = self.stage.code(context)
        output: list[Emitted] = []
        bolt.context = context
        bolt._emit = lambda port, values, _: output.append((port_meant(port, operator.emits), 0, values))
        bolt._ack, bolt._fail = _no_single_tuple, _no_single_tuple
        story = Storyteller(operator, self.stage.folder)
        try:
            with watch(operator.timeout, lambda: 0):
                # A shuffle delivers tuples in any order.
                bolt.process_epoch(**{port: [tup for _, tup in sorted(of_port, key=_place)]
                                      for port, of_port in rows.items()})
            return fitting_batches(output, operator.emits, [latest], None)
        except Hung as error:
            raise WorkerFault("operator", story.hung(error, None, "process_epoch")) from error
        except Misfit as misfit:
            raise WorkerFault("operator", f"{who(operator)}: {misfit}") from misfit
        except (Exception, SystemExit) as error:
            raise WorkerFault("operator", story.told(error, None, "process_epoch")) from error


def _place(row: tuple[int, Any]) -> int:
    return row[0]


def _no_single_tuple(*_: Any) -> None:
    raise ValueError("ack and fail are about single tuples, and process_epoch has all of an epoch: raise an exception")
