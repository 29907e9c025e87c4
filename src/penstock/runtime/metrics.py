"""Count tuples per operator from the metrics that Spark observes in each micro-batch."""

from __future__ import annotations

import threading
from collections import deque

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
from penstock.spark.digests import OPERATOR_DIGEST, SINK_DIGEST
from penstock.topology.lineage import watching_operators

_SETTLE_SECONDS = 5.0


class OperatorCounts(StreamingQueryListener):
    """Adds what each micro-batch observed to the progress."""

    def __init__(self, plan: Plan, progress: Progress, digests: bool = False) -> None:
        self._operators = counts_needed(plan)
        self.needed = bool(self._operators or watching_operators(plan.topology) or digests)
        """False when every count can be derived and no tuple can be late: then listening would only cost time."""
        self._progress = progress
        self.digests: deque[tuple[int, dict[str, str]]] = deque()
        """Of each micro-batch what replicas compare, by operator and sink; whoever wants it takes it out."""
        self._seen = -1
        self._arrived = threading.Condition()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to count yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing more."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        counts = {}
        for name, row in event.progress.observedMetrics.items():
            operator, _, what = name.rpartition("|")
            if what == "tuples" and operator in self._operators:
                counts[operator] = int(row["tuples"])
        self._progress.add(counts)
        self._take_digests(event)
        self._progress.came_late(sum(state.numRowsDroppedByWatermark for state in event.progress.stateOperators))
        with self._arrived:
            self._seen = max(self._seen, event.progress.batchId)
            self._arrived.notify_all()

    def _take_digests(self, event: QueryProgressEvent) -> None:
        found = {}
        for name, row in event.progress.observedMetrics.items():
            node, _, what = name.rpartition("|")
            if what in (OPERATOR_DIGEST, SINK_DIGEST):
                found[node if what == OPERATOR_DIGEST else f"sink {node}"] = f"{row['rows']}:{row['sum']:x}"
        if found:
            self.digests.append((event.progress.batchId, found))

    def settle(self, batch_id: int) -> None:
        """Wait until that micro-batch has been counted, so that final numbers are complete.

        Spark reports it a moment after its commit log is written.
        """
        if self.needed:
            with self._arrived:
                self._arrived.wait_for(lambda: self._seen >= batch_id, timeout=_SETTLE_SECONDS)
