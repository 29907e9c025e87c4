"""Run an epoch whose custom code may fail for single tuples, until it is settled what becomes of each of them.

Tuples of operators with `drop` and `dead-letter` have failed for good: they are counted, or buried when the epoch is
committed. One of an operator with `retry` takes its source tuple out of the whole epoch: the job runs again without it,
from the state of the epoch before, so that neither a sink nor a state sees anything of it until it is replayed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from penstock.coordination.base import MAX_VALUE_BYTES
from penstock.epochs.log import EpochLog
from penstock.epochs.postponed import Late, Offset, Origin, Postponed, Replay, Span, replays_in
from penstock.epochs.record import EpochRecord
from penstock.epochs.sequence import anchor_of, is_of_timer
from penstock.errors import CoordinationError, DeliveryError, OperatorError
from penstock.spark.epoch_job import StagedBySink
from penstock.spark.failures import Dropped, Failure, collect_failures, forget_failures, leave_out
from penstock.topology.dead_letters import burying_windows
from penstock.topology.model import Custom, ErrorKind, OnError, Topology

MAX_ROUNDS = 8
"""How often an epoch's job is run before its code counts as failing by chance."""
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2

Letter = dict[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Settled:
    """An epoch whose job has run, with nothing left to decide."""

    staged: StagedBySink
    failed: Mapping[str, int] = field(default_factory=dict)
    """By operator, how many tuples failed for good."""
    postponed: int = 0
    """How many source tuples are replayed later."""
    late: int = 0
    """How many tuples came too late for their window and are buried."""


@dataclass
class TupleFailures:
    """Decides what becomes of the tuples that fail in a topology; the committer asks it to run each epoch."""

    topology: Topology
    state: Path
    log: EpochLog
    starts: Mapping[str, Offset]
    """Where each source begins."""
    slices: int
    """How many slices each source's epochs are read in."""
    owes: bool = False
    """Whether an earlier run has left tuples to be replayed, be it of operators that retry no more."""
    _history: Mapping[int, Replay] = field(init=False, default_factory=dict)
    """By sequence, the tuples that the present epoch replays."""
    _record: EpochRecord | None = field(init=False, default=None)
    """The epoch that was settled last."""

    @cached_property
    def on_error(self) -> dict[str, OnError]:
        """By operator, for those whose failed tuples come here: that let a tuple fail, or may not ack one."""
        custom = (op for op in self.topology.operators if isinstance(op, Custom))
        tolerant = {op.name: op.on_error for op in custom if op.tolerates or self.topology.acking}
        return tolerant | dict.fromkeys(self._windows, OnError(ErrorKind.DEAD_LETTER))

    @cached_property
    def _windows(self) -> list[str]:
        return burying_windows(self.topology)

    def settle(
        self,
        record: EpochRecord,
        run: Callable[[StagedBySink | None], StagedBySink],
    ) -> Settled:
        """Run the epoch's job, and again without the tuples that are to be replayed later.

        `run` is given what the last run staged, to throw it away; None the first time. Raises DeliveryError when other
        tuples fail each time, and OperatorError when an operator with `on_error: fail` has not acked a tuple.
        """
        epoch, self._record = record.epoch, record
        if self.on_error:
            forget_failures(self.state, epoch)
        if not (self.topology.retries or self.owes):
            done = run(None)
            self._refuse_unacked(epoch)
            return self._settled(epoch, done)
        replays = replays_in(epoch, self._patiently(self.log.all_postponed))
        self._history = {replay.anchor.sequence: replay for replay in replays}
        agreed = self._patiently(lambda: self.log.postponed(epoch))
        current = agreed or Postponed(epoch)
        staged = None
        for _ in range(MAX_ROUNDS):
            if agreed is not None or staged is not None:
                leave_out(self.state, epoch, current.sequences())
            staged = run(staged)
            self._refuse_unacked(epoch)
            failing = self._to_be_replayed(epoch)
            if not failing:
                final = agreed or self._agree(current)
                if final.sequences() == current.sequences():
                    return self._settled(epoch, staged, len(current.tuples))
                agreed = current = final
            elif agreed is None:
                current = self._with(current, failing, record)
        raise DeliveryError(self._by_chance(epoch))

    def letters(self, epoch: int) -> Iterator[Letter]:
        """The dead letters of the epoch that was settled last."""
        spans: dict[tuple[int, int], Span] = {}
        for failure in collect_failures(self.state, epoch):
            if isinstance(failure, Failure):
                yield self._letter(epoch, failure, spans)

    def committed(self, epoch: int) -> None:
        """The epoch is through: what its tasks noted is needed no more."""
        if self.on_error:
            forget_failures(self.state, epoch)

    # -- what failed ----------------------------------------------------------------------------

    def _to_be_replayed(self, epoch: int) -> set[int]:
        """The sequences of the source tuples that failed in the last run and may be tried again."""
        return {
            failure.sequence
            for failure in collect_failures(self.state, epoch)
            if isinstance(failure, Failure)
            and not is_of_timer(failure.sequence)
            and self._attempts(failure.sequence) <= self.on_error[failure.operator].retries
        }

    def _refuse_unacked(self, epoch: int) -> None:
        """Where a tuple may not fail, one that was not acked ends the run; code that raised has ended it already."""
        for failure in collect_failures(self.state, epoch) if self.topology.acking else ():
            operator = self.topology.node(failure.operator)
            if isinstance(failure, Failure) and isinstance(operator, Custom) and not operator.tolerates:
                where = f" ({operator.where})" if operator.where.line else ""
                raise OperatorError(
                    f"operator '{operator.name}'{where}: {operator.code}: a tuple was {failure.error}\n"
                    f"  tuple: {json.dumps(failure.tuple, ensure_ascii=False)}\n"
                    "  call self.ack(tup) or self.fail(tup) for every tuple, raise the topology's `ack_timeout`, "
                    "or let `on_error` say what becomes of it"
                )

    def _letter(self, epoch: int, failure: Failure, spans: dict[tuple[int, int], Span]) -> Letter:
        """What is written of a tuple that is buried; `spans` are those that are known already."""
        sequence = failure.sequence
        anchor, origin = anchor_of(sequence), self._origin(sequence)
        letter = {
            "epoch": epoch,
            "operator": failure.operator,
            "error": failure.error,
            "at": failure.at,
            "tuple": failure.tuple,
            "attempts": self._attempts(sequence),
            "source": None,
            "read_in_epoch": origin.epoch,
            "position": None,
            "span": None,
        }
        if is_of_timer(sequence):
            return letter
        letter |= {"source": self.topology.sources[anchor.source].name, "position": origin.position}
        if anchor.epoch != epoch:
            # A state has kept it since: it cannot be read again by itself.
            return letter
        assert self._record is not None, "an epoch is settled before its dead are buried"
        span = spans.get((anchor.source, origin.epoch)) or self._span(sequence, self._record)
        spans[anchor.source, origin.epoch] = span
        return letter | {"span": [span.begin, span.end, span.slices]}

    def _settled(self, epoch: int, staged: StagedBySink, postponed: int = 0) -> Settled:
        counts: Counter[str] = Counter()
        for failure in collect_failures(self.state, epoch):
            counts[failure.operator] += failure.count if isinstance(failure, Dropped) else 1
        late = sum(counts.pop(window, 0) for window in self._windows)
        return Settled(staged, dict(counts), postponed, late)

    def _attempts(self, sequence: int) -> int:
        replay = self._history.get(sequence)
        return 1 if replay is None else replay.late.attempts + 1

    def _origin(self, sequence: int) -> Origin:
        replay, anchor = self._history.get(sequence), anchor_of(sequence)
        return Origin(anchor.epoch, anchor.position) if replay is None else replay.late.origin

    # -- what is agreed -------------------------------------------------------------------------

    def _with(self, postponed: Postponed, failing: set[int], record: EpochRecord) -> Postponed:
        """`postponed`, and the source tuples of these sequences too."""
        tuples = {late.anchor.sequence: late for late in postponed.tuples}
        spans = dict(postponed.spans)
        for sequence in failing:
            anchor, origin = anchor_of(sequence), self._origin(sequence)
            tuples[sequence] = Late(anchor, origin, self._attempts(sequence))
            if (anchor.source, origin.epoch) not in spans:
                spans[anchor.source, origin.epoch] = self._span(sequence, record)
        return Postponed(postponed.epoch, tuple(tuples[sequence] for sequence in sorted(tuples)), spans)

    def _span(self, sequence: int, record: EpochRecord) -> Span:
        """What the position of a source tuple of this epoch refers to."""
        replay = self._history.get(sequence)
        if replay is not None:
            return replay.span
        name = self.topology.sources[anchor_of(sequence).source].name
        before = self._patiently(lambda: self.log.get(record.epoch - 1))
        return Span((self.starts if before is None else before.ends)[name], record.ends[name], self.slices)

    def _agree(self, postponed: Postponed) -> Postponed:
        if len(postponed.to_json()) > MAX_VALUE_BYTES:
            raise DeliveryError(
                f"epoch {postponed.epoch}: {len(postponed.tuples):,} tuples failed at once, more than can be replayed "
                "later; lower epoch.max_tuples, or find out what makes so many fail"
            )
        return self._patiently(lambda: self.log.postpone(postponed))

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        """Ask the coordinator; when it is away for a while, wait for it."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return ask()
            except CoordinationError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _by_chance(self, epoch: int) -> str:
        failures = (item for item in collect_failures(self.state, epoch) if isinstance(item, Failure))
        example = next(failures, None)
        shown = "" if example is None else f"\n  the last one: operator '{example.operator}': {example.error}"
        return (
            f"epoch {epoch} was run {MAX_ROUNDS} times, each time without the tuples that had failed before, and each "
            f"time other ones failed{shown}\n"
            "  custom code with on_error: retry must fail for the same tuples when it is called again; if it asks "
            "something outside, let it wait for the answer, or use on_error: dead-letter"
        )
