"""Run a bolt that acks its tuples itself over the Arrow batches of one task."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.connectors.console import plain
from penstock.plan.graph import UNACKED
from penstock.spark.acks import AckLedger, Delivery
from penstock.spark.emitted import Emits, Emitted, Misfit, batches_of, fitting_batches, port_meant
from penstock.spark.failures import FailureLedger
from penstock.spark.faults import WorkerFault
from penstock.spark.mistakes import Storyteller, said, who
from penstock.spark.numbering import SEQUENCE
from penstock.spark.tuples import rows_of, tuple_class
from penstock.spark.watchdog import Hung, watch
from penstock.topology.bolt import Bolt, Context, Fail
from penstock.topology.model import Custom
from penstock.topology.schema import parse_schema

_UNACKED_SCHEMA = parse_schema("operator string, tuple string, ack bigint")
_WAITS_AGAIN = 2
"""How often a tuple that was not acked may be given to the bolt once more on the spot: every time may take as long as
`ack_timeout`."""


def emits_with_unacked(operator: Custom) -> Emits:
    """What such a bolt's stage gives: the operator's own ports, and the tuples that are not acked."""
    return (*operator.emits, (UNACKED, _UNACKED_SCHEMA))


class SelfAckingTask:
    """Gives a bolt the tuples of one task and waits for their acks. `give` each batch, then `finish` once.

    What the bolt emits for a tuple is held back until the tuple is acked: of one that fails, or is not acked in time,
    nothing goes on. Without a ledger of failures the first tuple that fails ends the run. A tuple that is not acked is
    not noted here: it leaves on a port of its own.
    """

    def __init__(
        self,
        operator: Custom,
        folder: str,
        columns: tuple[str, ...],
        bolt: Bolt,
        context: Context,
        timeout: float,
        failures: FailureLedger | None,
        calls: int,
    ) -> None:
        self._operator = operator
        self._ports = {port for port, _ in operator.emits}
        self._columns = columns
        self._bolt = bolt
        self._failures = failures
        self._calls = calls
        """How often a tuple that fails is given to the bolt before it counts as failed."""
        self._story = Storyteller(operator, folder)
        self._acks = AckLedger(operator.name, context.instance, timeout)
        self._failed: list[Delivery] = []
        self._unacked: list[Delivery] = []
        self._thread = threading.get_ident()
        self._current: Any = None
        """The tuple that `process` has at present."""
        self._done = 0
        bolt.context = context
        bolt._emit, bolt._ack, bolt._fail = self._emit, self._acks.ack, self._fail

    def give(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Have the bolt process the batch; what it has emitted for tuples that are acked by then."""
        self._watched(self._deliver, batch.column(SEQUENCE).to_pylist(), rows_of(batch, self._columns))
        yield from self._decided()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """There are no more tuples: call the bolt's `finish` and wait; the rest, and what is not acked."""
        yield from self._wait_for_acks()
        for call in range(1, self._calls):
            again, self._failed = self._failed, []
            if call <= _WAITS_AGAIN:
                again, self._unacked = again + self._unacked, []
            if not again:
                break
            # As new objects: an ack for the old one must not count for this one.
            fresh = map(tuple_class(self._columns), [delivery.tup for delivery in again])
            self._watched(self._deliver, [delivery.sequence for delivery in again], fresh)
            yield from self._wait_for_acks()
        for delivery in self._failed:
            assert delivery.error is not None
            self._note(delivery, said(delivery.error), self._story.place(delivery.error))
        yield from self._unacked_rows()

    # -- what the bolt is called with, and calls ------------------------------------------------

    def _deliver(self, sequences: list[int], tuples: Iterable[Any]) -> None:
        for delivery in self._acks.deliver(sequences, tuples):
            self._current = tup = delivery.tup
            try:
                self._bolt.process(tup)
            except (Exception, SystemExit) as error:
                self._acks.overrule(delivery, error)
            except KeyboardInterrupt as error:
                raise WorkerFault("operator", self._story.told(error, tup)) from error
            self._done += 1
        self._current = None

    def _emit(self, port: str, values: Any, anchor: Any) -> None:
        if anchor is None:
            if self._current is None or threading.get_ident() != self._thread:
                raise ValueError("emit outside of process does not say for which tuple: write emit(…, anchor=tup)")
            anchor = self._current
        if port not in self._ports:
            port = port_meant(port, self._operator.emits)
        self._acks.emit(anchor, port, values)

    def _fail(self, tup: Any, reason: str) -> None:
        self._acks.fail(tup, Fail(reason))

    def _wait_for_acks(self) -> Iterator[pa.RecordBatch]:
        try:
            self._watched(self._bolt.finish)
        except (Exception, SystemExit) as error:
            if isinstance(error, WorkerFault):
                raise
            left = self._acks.take_open()
            if not left or self._failures is None:
                raise WorkerFault("operator", self._story.told(error, None, "finish")) from error
            for delivery in left:
                delivery.error = error
            self._failed.extend(left)
        self._acks.wait()
        # Before the decided ones are taken: what is acked in between would be neither.
        self._unacked.extend(self._acks.take_open())
        yield from self._decided()

    def _watched(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            with watch(self._operator.timeout, lambda: self._done):
                call(*arguments)
        except Hung as error:
            raise WorkerFault("operator", self._story.hung(error, self._current)) from error

    # -- what it gives, and where it fails ------------------------------------------------------

    def _decided(self) -> Iterator[pa.RecordBatch]:
        acked: list[Delivery] = []
        for delivery in self._acks.take_decided():
            if delivery.error is None:
                acked.append(delivery)
            elif self._failures is None:
                story = self._story.told(delivery.error, delivery.tup)
                raise WorkerFault("operator", story) from delivery.error
            else:
                self._failed.append(delivery)

        def note(row: int, what: str) -> None:
            self._note(acked[row], what, "")

        output: list[Emitted] = [
            (port, row, values) for row, delivery in enumerate(acked) for port, values in delivery.emitted
        ]
        sequences = [delivery.sequence for delivery in acked]
        emits = emits_with_unacked(self._operator)
        try:
            yield from fitting_batches(output, emits, sequences, note if self._failures else None)
        except Misfit as misfit:
            raise WorkerFault("operator", f"{who(self._operator)}: {misfit}") from misfit

    def _note(self, delivery: Delivery, error: str, place: str) -> None:
        assert self._failures is not None
        self._failures.note(delivery.sequence, self._by_name(delivery), error, place)

    def _unacked_rows(self) -> Iterator[pa.RecordBatch]:
        rows: list[Emitted] = [
            (UNACKED, row, (self._operator.name, json.dumps(plain(self._by_name(delivery))), delivery.id))
            for row, delivery in enumerate(self._unacked)
        ]
        yield from batches_of(rows, emits_with_unacked(self._operator), [item.sequence for item in self._unacked])

    def _by_name(self, delivery: Delivery) -> dict[str, Any]:
        return dict(zip(self._columns, delivery.tup, strict=True))
