"""Count tuples per operator from the metrics that Spark observes in each micro-batch."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from penstock.plan.counting import counts_needed
from penstock.plan.graph import Plan
from penstock.runtime.progress import Progress
from penstock.spark.digests import DIGEST, written_digest
from penstock.spark.late_tuples import LATE_COUNT
from penstock.spark.tuple_counts import PORT_COUNTS, TUPLE_COUNT
from penstock.topology.lineage import watching_operators

_SETTLE_SECONDS = 5.0
_JOIN = "symmetricHashJoin"


class OperatorCounts(StreamingQueryListener):
    """Adds what each micro-batch observed to the progress."""

    def __init__(self, plan: Plan, progress: Progress, digests: bool = False) -> None:
        self._operators = counts_needed(plan)
        self.needed = bool(self._operators or watching_operators(plan.topology) or digests)
        """False when every count can be derived and no tuple can be late: then listening would only cost time."""
        self._progress = progress
        self.digests: deque[tuple[int, dict[str, str]]] = deque()
        """Of each micro-batch what replicas compare, by step; whoever wants it takes it out."""
        self._seen = -1
        self._arrived = threading.Condition()

    @property
    def _jlistener(self) -> Any:
        if not hasattr(self, "_wrapped"):
            jvm: Any = SparkContext._jvm
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(_ProgressAsText(self))
        return self._wrapped

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Not called: see `_ProgressAsText`."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Not called: see `_ProgressAsText`."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Not called: see `_ProgressAsText`."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Not called: see `_ProgressAsText`."""

    def take(self, progress: Mapping[str, Any]) -> None:
        """A micro-batch is done: what Spark says of it."""
        counts, digests, late = {}, {}, 0
        for name, row in progress.get("observedMetrics", {}).items():
            node, _, what = name.rpartition("|")
            if what == TUPLE_COUNT and node in self._operators:
                counts[node] = int(row["tuples"])
            elif what == PORT_COUNTS and node in self._operators:
                self._progress.add_ports(node, {port: int(number) for port, number in row.items()})
            elif what == LATE_COUNT:
                late += int(row["tuples"])
            elif what == DIGEST:
                digests[node] = written_digest(row)
        # Windows have told theirs already, and exactly; of a join, Spark counts what it drops.
        joins = (state for state in progress["stateOperators"] if state["operatorName"] == _JOIN)
        late += sum(state["numRowsDroppedByWatermark"] for state in joins)
        self._progress.add(counts)
        self._progress.came_late(late)
        if digests:
            self.digests.append((progress["batchId"], digests))
        with self._arrived:
            self._seen = max(self._seen, progress["batchId"])
            self._arrived.notify_all()

    def settle(self, batch_id: int) -> None:
        """Wait until that micro-batch has been counted, so that final numbers are complete.

        Spark reports it a moment after its commit log is written.
        """
        if self.needed:
            with self._arrived:
                self._arrived.wait_for(lambda: self._seen >= batch_id, timeout=_SETTLE_SECONDS)


class _ProgressAsText:
    """What Spark calls: it takes the progress as one text.

    pyspark's own listener asks for each part of it by itself, and for each metric for a class by its name, for which
    the JVM looks in all jars: a seventh of what Java does in a small epoch.
    """

    def __init__(self, counts: OperatorCounts) -> None:
        self._counts = counts

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to count yet."""

    def onQueryProgress(self, event: Any) -> None:
        self._counts.take(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing more."""

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
