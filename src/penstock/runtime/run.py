"""Run a topology: from valid model to committed epochs, until its input ends or somebody stops it."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.console import ConsoleSink, EpochRows
from penstock.connectors.lookup_tables import enrichments_of, lookup_table
from penstock.connectors.registry import sink_connector
from penstock.connectors.shown_rows import shown_sink
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.orders import FIRST, Orders
from penstock.epochs.record import EpochRecord
from penstock.plan.graph import Plan, build_plan
from penstock.plan.output_mode import output_mode
from penstock.plan.rewrites import rewrite
from penstock.runtime import checkpoint, compatibility
from penstock.runtime.committer import ALONE, Committer
from penstock.runtime.epoch_query import EpochQuery, make_sources
from penstock.runtime.gate import Gate
from penstock.runtime.instances import instances
from penstock.runtime.live_rescale import LiveRescale
from penstock.runtime.metrics import OperatorCounts
from penstock.runtime.plain_words import full_disk_in_plain_words, in_user_terms, is_about_state, jvm_gone
from penstock.runtime.progress import Progress, Snapshot
from penstock.runtime.rescale_request import forget_old_requests
from penstock.runtime.run_settings import Outcome, RunSettings
from penstock.runtime.snapshots import epoch_of_batch
from penstock.runtime.state_files import can_go_back
from penstock.runtime.state_folder import COMMAND_SECONDS, StateFolder
from penstock.runtime.swap import settle
from penstock.runtime.tuple_age import TupleAge
from penstock.runtime.tuple_failures import TupleFailures
from penstock.spark.code_shipping import ship_code
from penstock.spark.session import CHANGELOGS, SessionSettings, cores_of, prepare_workers, start_session
from penstock.spark.signals import Signals
from penstock.spark.stored_state import forget_loaded_state
from penstock.spark.warm_up import warm_up
from penstock.topology.dead_letters import buries, dead_letter_sink
from penstock.topology.model import Topology

__all__ = ["Outcome", "Run", "RunSettings", "run_topology"]

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.05
_NOTHING_TO_DO = ("Waiting for", "Getting offsets from")
"""How Spark says so: it waits, or has just looked again."""
_MOST_REWINDS = 3
"""How many epochs a run goes back when their state cannot be read, before it asks the user."""


class Run:
    """One run of one topology. `start`, then `wait`; `stop` from anywhere drains and ends it."""

    def __init__(self, topology: Topology, settings: RunSettings | None = None) -> None:
        self.topology = topology
        self.settings = settings or RunSettings()
        self.plan: Plan = rewrite(build_plan(topology))
        self.progress = Progress(age=TupleAge(topology.epoch.interval))
        self.state = StateFolder.of(topology, self.settings.state)
        self.resumed_from = 0
        self.on_commit: Callable[[EpochRecord], None] = lambda _: None
        """Called by the committing thread when an epoch is delivered."""
        self.before_change: Callable[[], None] = lambda: None
        """Called within `wait` when the query is about to be stopped, and to go on with other state after a while."""
        self._id = uuid.uuid4().hex
        self._signals = Signals(self.state.path, self._id)
        self._rescale = LiveRescale(topology, self.state, lambda said: self._say(said))
        self._resources = contextlib.ExitStack()
        """What must be let go of at the end, last taken first."""
        self._stopping = False
        self._gate = Gate()
        self._rewinds = 0
        self._first_before = 0
        """What the queries before a rescale were first to deliver."""
        self._say: Callable[[str], None] = lambda _: None
        self._lock: int | None = None
        self._replays = topology.retries
        """Whether any tuple may have to be replayed: one of this run, or one that an earlier run still owes."""

    def start(
        self,
        spark: SparkSession | None = None,
        say: Callable[[str], None] = lambda _: None,
        show: Callable[[EpochRows], None] | None = None,
        before_query: Callable[[], None] = lambda: None,
    ) -> None:
        """Check the outside world, start Spark unless given one, and start the query.

        `say` is told what is being done, `show` takes the rows of console sinks, `before_query` is called when Spark is
        up, and may put another checkpoint in place. Everything that can fail without Spark fails before Spark is
        started.
        """
        with full_disk_in_plain_words(self.state.path):
            # No other replica has its name, but a command may be at its state.
            held = self.state.held(0.0 if self.settings.replica is None else COMMAND_SECONDS)
            self._lock = self._resources.enter_context(held)
            if spark is None:
                prepare_workers(self.settings.master)
            try:
                self._start(spark, say, show, before_query)
            except (Py4JError, ConnectionError, PySparkRuntimeError) as error:
                self._let_go()
                raise jvm_gone(self.resumed_from, self._jvm_log) from error
            except BaseException:
                self._let_go()
                raise

    def _start(
        self,
        spark: SparkSession | None,
        say: Callable[[str], None],
        show: Callable[[EpochRows], None] | None,
        before_query: Callable[[], None],
    ) -> None:
        self._say = say
        self._prepare_state(say)
        self._sources = make_sources(self.topology)
        newest = checkpoint.newest_epoch(self.state.checkpoint)
        for name, source in self._sources.items():
            source.schema()
            if newest is not None:
                # Raises when what was read is not there any more.
                source.cut(dict(newest.ends[name]), 1)
        for enrich in enrichments_of(self.topology):
            # Raises when the table is not there, or not as it is said to be.
            lookup_table(enrich, self.topology.name, self.topology.folder.absolute()).snapshot(self.state.path)
        starts = {name: source.start() for name, source in self._sources.items()}
        slices = self._cores
        self._replays = self.topology.retries or any(item.tuples for item in self._log.all_postponed())
        self._failures = TupleFailures(self.topology, self.state.path, self._log, starts, slices, self._replays)
        self._open_sinks(show)
        if spark is None:
            say("starting Spark")
            spark = start_session(self._session_settings())
            self._resources.callback(spark.stop)
            warm_up(spark)
        self._spark = spark
        before_query()
        ship_code(spark, self.topology)
        say("planning")
        self.progress.begin()
        self._heed_orders()
        self._query = self._start_query(spark)

    def explain(self, spark: SparkSession | None = None) -> str:
        """Spark's physical plan of the whole topology, without running it."""
        self._make_sinks(None)
        own = None if spark is not None else start_session(self._session_settings())
        session = spark or own
        assert session is not None
        try:
            rows = self._rows.staged(session, self._id)
            jvm: Any = session._jvm
            return str(jvm.PythonSQLUtils.explainString(rows._jdf.queryExecution(), "simple"))
        finally:
            if own is not None:
                own.stop()

    def lay_out_state(self, spark: SparkSession, state_partitions: int) -> None:
        """Run the query once without input, and leave its checkpoint: it shows how Spark arranges the state.

        Neither sinks nor the epoch log are touched. The state is left whole, not as changes.
        """
        self._make_sinks(None)
        self.state.path.mkdir(parents=True, exist_ok=True)
        self._signals.want_stop()
        spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions))
        spark.conf.set(CHANGELOGS, "false")
        ship_code(spark, self.topology)
        try:
            rows = self._rows.staged(spark, self._id)
            writer = rows.writeStream.outputMode(output_mode(self.topology))
            writer = writer.option("checkpointLocation", str(self.state.checkpoint))
            query = writer.foreachBatch(lambda batch, _: batch.write.format("noop").mode("append").save()).start()
            try:
                while not self._commit_logged(0):
                    query.awaitTermination(_POLL_SECONDS)  # type: ignore[arg-type]
            finally:
                query.stop()
        finally:
            spark.conf.set(CHANGELOGS, "true")
            self._signals.clear()

    def wait(self, look: Callable[[Snapshot], None] = lambda _: None) -> Outcome:
        """Until the input ends, `stop` is called, or something fails; `look` sees the progress."""
        try:
            while not self._over():
                self._heed_orders()
                self.progress.waits_for(self._signals.why_away() or self._gate.why_closed(self._signals.received()))
                look(self.progress.snapshot())
            if self.settings.metrics:
                self._counts.settle(self._committer.last_batch)
        finally:
            self._shut_down()
        return Outcome(self._committer.finished_batch is not None, self.progress.snapshot())

    def new_digests(self) -> Iterator[tuple[int, dict[str, str]]]:
        """By epoch, what replicas compare, of the epochs since the last call."""
        while self._counts.digests:
            batch, found = self._counts.digests.popleft()
            # Spark forgets old batches: then the siblings have been told by others, or never will be.
            with contextlib.suppress(FileNotFoundError):
                yield epoch_of_batch(self.state.checkpoint, batch).epoch, found

    @property
    def first(self) -> int:
        """How many epochs this replica was the first to deliver, since its start."""
        return self._first_before + self._committer.first

    def stop(self) -> None:
        """Cut no further epoch; `wait` returns when the one in flight is committed."""
        self._stopping = True
        self._signals.want_stop()

    @property
    def is_frozen(self) -> bool:
        """Whether it was ordered to begin no further epoch."""
        return self._gate.is_closed

    @property
    def is_idle(self) -> bool:
        """Whether its query has found no epoch to do: none is agreed that it has not done, and none is due."""
        with contextlib.suppress(Py4JError, ConnectionError):
            status = self._query.status
            return not status["isDataAvailable"] and status["message"].startswith(_NOTHING_TO_DO)
        return False

    # -- before ---------------------------------------------------------------------------------

    def _prepare_state(self, say: Callable[[str], None]) -> None:
        """Go on from what an earlier run left, or start anew; the coordinator must answer for either."""
        if settle(self.state):
            say("carrying out what was interrupted: the state is replaced as it was asked for")
        committed = self.state.committed()
        anew = self.settings.replica is None and (self.settings.fresh or committed.ended)
        if anew:
            self.state.clear()
            committed = self.state.committed()
        self.resumed_from = committed.epoch
        coordinator = open_coordinator(self._coordinator_address())
        self._resources.callback(coordinator.close)
        self._log = EpochLog(coordinator)
        self._orders = Orders(coordinator)
        restored = self.state.to_restore()
        if anew or restored.forget:
            self._log.clear()
            self._orders.forget()
        self._log.imported(restored.epochs)
        if self.settings.replica is None:
            self._log.only_replicas([ALONE])
        forget_old_requests(self.state)
        checkpoint.mend(self.state.checkpoint, say)
        if compatibility.remembered_shape(self.state) is None:
            compatibility.check_log(self.topology, self._log.newest(), self._coordinator_address())
        # A checkpoint is useful only to a topology that still has the same sources and state.
        self.state.write_shape(json.dumps(compatibility.checked_shape(self.topology, self.state, self._cores)))
        self._signals.clear_tasks()
        self._resources.callback(lambda: self._signals.clear())

    def _coordinator_address(self) -> str:
        if self.settings.replica is not None and self.settings.coordinator is not None:
            # Of all replicas: it is complete.
            return self.settings.coordinator
        return self.state.coordinator_for(self.topology, self.settings.coordinator)

    def _place(self, name: str) -> Place:
        return Place(self.topology.name, name, self.topology.folder.absolute(), self.settings.replica or ALONE)

    def _make_sinks(self, show: Callable[[EpochRows], None] | None) -> None:
        self._sinks: dict[str, SinkConnector] = {}
        for item in self.topology.sinks:
            sink = sink_connector(item, self._place(item.name))
            if self.settings.scratch is not None:
                sink = sink.redirected(self.settings.scratch) or sink
            if isinstance(sink, ConsoleSink) and self.settings.replica is not None:
                sink = shown_sink(item, self.topology, self.state.path.parent.parent, self.settings.replica)
            elif isinstance(sink, ConsoleSink) and show is not None:
                sink = sink.writing_to(show)
            self._sinks[item.name] = self._shared(sink)

    def _shared(self, sink: SinkConnector) -> SinkConnector:
        """As it is used among siblings, where there are any."""
        return sink if self.settings.replica is None else sink.shared()

    def _open_sinks(self, show: Callable[[EpochRows], None] | None) -> None:
        fresh = self.resumed_from == 0 and self.settings.replica is None
        self._make_sinks(show)
        burial = dead_letter_sink(self.topology)
        self._dead_letters = sink_connector(burial, self._place(burial.name))
        if self.settings.scratch is not None:
            self._dead_letters = self._dead_letters.redirected(self.settings.scratch) or self._dead_letters
        self._dead_letters = self._shared(self._dead_letters)
        beginning = self.state.to_restore().sinks
        for name, sink in self._sinks.items():
            sink.open(fresh or name in beginning)
        if buries(self.topology):
            self._dead_letters.open(fresh or burial.name in beginning)
        # Not before all are open: until then they have written nothing, and may begin once more.
        self.state.restored.unlink(missing_ok=True)

    def _state_partitions(self) -> int:
        return instances(self.topology, self._cores, compatibility.remembered_shape(self.state))

    @property
    def _cores(self) -> int:
        return cores_of(self.settings.master)

    def _session_settings(self) -> SessionSettings:
        name, run, partitions = self.topology.name, self.settings, self._state_partitions()
        alone = run.replica is None
        return SessionSettings(name, run.master, self.state.logs, partitions, run.memory, run.spark, self._lock, alone)

    # -- the query ------------------------------------------------------------------------------

    @property
    def _rows(self) -> EpochQuery:
        address = self._coordinator_address()
        return EpochQuery(self.topology, self.plan, self.settings, self.state, address, self._sinks, self._replays)

    def _start_query(self, spark: SparkSession) -> StreamingQuery:
        spark.conf.set("spark.sql.shuffle.partitions", str(self._state_partitions()))
        rows, run_epoch = self._rows.delivered(spark, self._id)
        self.progress.work.was_held()
        self._counts = OperatorCounts(self.plan, self.progress, self.settings.replica is not None)
        self._listening = self._resources.enter_context(contextlib.ExitStack())
        if self.settings.metrics and self._counts.needed:
            spark.streams.addListener(self._counts)
            self._listening.callback(spark.streams.removeListener, self._counts)
        self._committer = Committer(
            self.topology.delivery, self.state, self._log, self._sinks, self._dead_letters, self.progress, run_epoch,
            self._failures, self.settings.replica, self.on_commit,
        )  # fmt: skip
        writer = rows.writeStream.foreachBatch(self._committer)
        # How often to look; how often an epoch is cut is decided where it is cut, the same for all replicas.
        look = min(self.topology.epoch.interval / 4, _LOOK_SECONDS)
        return (
            writer.outputMode(output_mode(self.topology))
            .queryName(f"{self.topology.name}-{self._id[:8]}")
            .option("checkpointLocation", str(self.state.checkpoint))
            .trigger(processingTime=f"{int(look * 1000)} milliseconds")
            .start()
        )

    def _heed_orders(self) -> None:
        """Look what is wanted of it; while nobody can say, all stays as it is."""
        # Also one that is only watched has a name, which nobody knows.
        name = self.settings.replica if self.topology.replicas > 1 else None
        # Which tuples of an epoch are to be read again is only known when it is done.
        if self._gate.heed(self._orders, name or FIRST, self.topology.replica_names, reads_ahead=not self._replays):
            self.progress.work.was_held()
            self._signals.hold(self._gate.held)

    def _over(self) -> bool:
        """Wait a moment; True when there is nothing more to wait for. Raises what went wrong."""
        try:
            # Fractions of a second work, whatever the annotation says.
            terminated = self._query.awaitTermination(_POLL_SECONDS)  # type: ignore[arg-type]
        except PySparkException as error:
            if self._rewound(error):
                return False
            raise in_user_terms(error, self._committer.failure, self._committer.epoch, self.state) from error
        except (Py4JError, ConnectionError) as error:
            raise jvm_gone(self.state.committed().epoch, self._jvm_log) from error
        if terminated:
            return True
        if self._committer.finished_batch is not None:
            # Spark writes its commit log after ours: leave it a tidy checkpoint.
            return self._commit_logged(self._committer.finished_batch)
        if not self._stopping and self._rescale.hear():
            self._make_way()
        if not (self._stopping or self._rescale.wanted):
            return False
        status = self._query.status
        drained = not status["isTriggerActive"] or not status["isDataAvailable"]
        return drained and (self._stopping or not self._goes_on_rescaled())

    def _make_way(self) -> None:
        """Cut no further epoch: the state is to be divided. Where others use the state stores too, it ends for that."""
        if self.settings.master.startswith("local") and len(self._spark.streams.active) == 1:
            self._signals.want_stop()
        else:
            self._rescale.leave_to_command()
            self.stop()

    def _goes_on_rescaled(self) -> bool:
        """Divide the state, unless the last epoch is done by now; False when somebody has stopped the run meanwhile."""
        self._committer.retire()
        if self._committer.finished_batch is not None:
            return True
        self.before_change()
        try:
            self._end_query()
            self._rescale.carry_out(self._spark)
            if not self._stopping:
                self._query = self._start_query(self._spark)
            self._rescale.answer(going_on=not self._stopping)
        except (Py4JError, ConnectionError) as error:
            raise jvm_gone(self.state.committed().epoch, self._jvm_log) from error
        return not self._stopping

    def go_on_from(self, put_in_place: Callable[[], None]) -> None:
        """Finish the epoch in flight, let another checkpoint be put in place, and go on from there: for who is behind.

        Only from within `wait`. Nothing happens where the run is about to end.
        """
        if self._stopping:
            return
        # Before anybody is told to leave it alone: an epoch that never ends is to be noticed.
        self._committer.retire()
        if self._committer.finished_batch is not None:
            return
        self.before_change()
        try:
            self._end_query()
            forget_loaded_state(self._spark)
            put_in_place()
            self._query = self._start_query(self._spark)
            if self._stopping:
                # Said to the query before, perhaps.
                self._signals.want_stop()
        except (Py4JError, ConnectionError) as error:
            raise jvm_gone(self.state.committed().epoch, self._jvm_log) from error

    def _end_query(self) -> None:
        """Stop the query; the next one has an id of its own, whatever readers have left."""
        if self.settings.metrics:
            self._counts.settle(self._committer.last_batch)
        self._query.stop()
        self._listening.close()
        self._first_before += self._committer.first
        before, self._id = self._signals, uuid.uuid4().hex
        self._signals = Signals(self.state.path, self._id)
        self._signals.hold(self._gate.held)
        before.clear()

    def _rewound(self, error: PySparkException) -> bool:
        """Whether state that could not be read was thrown away, and its epoch is being done again."""
        damaged = is_about_state(f"{error}\n{self._committer.failure}")
        if not damaged or self._committer.last_batch >= 0 or self._rewinds == _MOST_REWINDS:
            return False
        epoch = checkpoint.rewind(self.state.checkpoint) if can_go_back(self.state.checkpoint) else None
        if epoch is None:
            return False
        self._rewinds += 1
        self._say(f"the state after epoch {epoch} cannot be read: that epoch is done again from the epoch log")
        self._listening.close()
        self._query = self._start_query(self._spark)
        return True

    def _commit_logged(self, batch_id: int) -> bool:
        return (self.state.checkpoint / "commits" / str(batch_id)).exists()

    def _shut_down(self) -> None:
        # A JVM that is gone has nothing left to stop.
        with contextlib.suppress(Py4JError, ConnectionError):
            self._query.stop()
        for sink in (*self._sinks.values(), self._dead_letters):
            sink.close()
        self._let_go()

    def _let_go(self) -> None:
        with contextlib.suppress(Py4JError, ConnectionError):
            self._resources.close()

    @property
    def _jvm_log(self) -> Path:
        """What the JVM and the workers print."""
        return self.state.logs / "workers.log"


def run_topology(
    topology: Topology,
    settings: RunSettings | None = None,
    spark: SparkSession | None = None,
    seconds: float | None = None,
) -> Outcome:
    """Run to the end of bounded input, or for some seconds; for notebooks and tests."""
    run = Run(topology, settings)
    run.start(spark)
    began = time.monotonic()

    def look(_: Snapshot) -> None:
        if seconds is not None and time.monotonic() - began > seconds:
            run.stop()

    return run.wait(look)
