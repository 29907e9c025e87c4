"""A topology as one streaming DataFrame, and how one epoch of it is run."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from penstock.connectors.base import Place, SinkConnector, SourceConnector
from penstock.connectors.lookup_tables import enrichment_to_json, enrichments_of
from penstock.connectors.registry import source_connector
from penstock.epochs.ticking import tick_rules
from penstock.plan.graph import Plan, Share
from penstock.plan.output_mode import APPEND, output_mode
from penstock.plan.pruning import columns_read
from penstock.plan.small_epochs import output_is_bounded, sources_to_read_ahead
from penstock.plan.tail import code_before_sink
from penstock.runtime.run_settings import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.spark.arrow_lines import can_encode
from penstock.spark.arrow_stage import BYTES_IN_BATCH, ROWS_IN_BATCH, limit_batches, map_batches
from penstock.spark.code_to_sink import CodeToSink
from penstock.spark.epoch_job import RunEpoch, run_small_here, run_staged
from penstock.spark.epoch_source import SMALL_EPOCH_TUPLES
from penstock.spark.lowering import Lowering, lower_plan
from penstock.spark.read_settings import ReadSettings
from penstock.spark.session import cores_of
from penstock.spark.staging import STAGED_SCHEMA, StagingStage
from penstock.spark.unacked import UnackedTuples
from penstock.topology.lineage import may_be_late, watching_operators, windows_of
from penstock.topology.model import Topology


@dataclass(frozen=True)
class EpochQuery:
    """What the query of a run reads, does and stages; `run` is a fresh id for every start of it."""

    topology: Topology
    plan: Plan
    settings: RunSettings
    state: StateFolder
    coordinator: str
    """The address of the coordinator that holds the epoch log."""
    sinks: dict[str, SinkConnector]
    replays: bool
    """Whether any tuple may be postponed and replayed."""

    def delivered(self, spark: SparkSession, run: str) -> tuple[DataFrame, RunEpoch]:
        """The streaming DataFrame, and how to run one epoch of it."""
        number = len(self.sinks)
        if output_is_bounded(self.plan):
            run_epoch = run_small_here(spark, self._staging(), number, SMALL_EPOCH_TUPLES, self.state.path)
            return self._lowered(spark, run)[1], run_epoch
        return self.staged(spark, run), run_staged(number)

    def staged(self, spark: SparkSession, run: str) -> DataFrame:
        """What every task has staged for the sinks."""
        lowering, rows = self._lowered(spark, run)
        return self._code_to_sink(lowering) or map_batches(rows, self._staging(), STAGED_SCHEMA)

    def _code_to_sink(self, lowering: Lowering) -> DataFrame | None:
        """The same where custom code and the only sink are one stage; None where they are not.

        Replicas compare what lies between.
        """
        code = code_before_sink(self.plan)
        if code is None or lowering.digests or code.name not in lowering.code:
            return None
        (sink,) = self.sinks.values()
        given, stage, schema = lowering.code[code.name]
        if not can_encode(schema, sink.encoding):
            return None
        return map_batches(given, CodeToSink(stage, self._staging(), schema.names), STAGED_SCHEMA)

    def _lowered(self, spark: SparkSession, run: str) -> tuple[Lowering, DataFrame]:
        """How the plan was lowered, and the rows of all sinks, each with its sink's number."""
        read = ReadSettings(
            topology=self.topology.name,
            folder=str(self.topology.folder.absolute()),
            state=str(self.state.path),
            coordinator=self.coordinator,
            run=run,
            sources=self.topology.sources,
            max_tuples=self.topology.epoch_tuples,
            most_tuples=self.topology.most_epoch_tuples,
            parallelism=cores_of(self.settings.master),
            interval_ms=round(self.topology.epoch.interval * 1000),
            alone=len(self.topology.sources) == 1 and not any(isinstance(step, Share) for step in self.plan.steps)
            and not watching_operators(self.topology),
            ticks=tick_rules(self.topology),
            windows_close=output_mode(self.topology) == APPEND,
            tables=[enrichment_to_json(enrich) for enrich in enrichments_of(self.topology)],
            timed=bool(watching_operators(self.topology)),
            marked=any(may_be_late(self.topology, window) for window in windows_of(self.topology)),
            columns=self._columns_to_read(),
            # What is read ahead cannot do without the tuples that fail.
            read_ahead=frozenset() if self.replays else sources_to_read_ahead(self.plan),
            retries=self.replays,
        )
        digests = self.settings.replica is not None
        lowering = Lowering(spark, self.plan, read, self.sinks, self.settings.metrics, digests)
        rows = lower_plan(lowering)
        if not {BYTES_IN_BATCH, ROWS_IN_BATCH} & self.settings.spark.keys():
            limit_batches(spark, lowering.narrow)
        return lowering, rows

    def _columns_to_read(self) -> dict[str, list[str]]:
        """The columns of each source of which not all are read; at least one, to count tuples by."""
        chosen: dict[str, list[str]] = {}
        sources = make_sources(self.topology)
        for name, wanted in columns_read(self.plan).items():
            if wanted is not None:
                columns = sources[name].schema().names
                chosen[name] = [column for column in columns if column.lower() in wanted] or [columns[0]]
        return chosen

    def _staging(self) -> StagingStage:
        # What is not acked takes the way of the sinks, behind the last of them.
        unacked = [UnackedTuples.of(self.topology, self.state.path)] if self.plan.self_acking else []
        return StagingStage.of((*self.sinks.values(), *unacked), self.topology.folder.absolute())


def make_sources(topology: Topology) -> dict[str, SourceConnector]:
    folder = topology.folder.absolute()
    return {item.name: source_connector(item, Place(topology.name, item.name, folder)) for item in topology.sources}
