"""Try an operator that has a key without Spark: give it tuples, move time, look at its state, see what it emits.

    from penstock.testing import KeyedHarness

    def test_many_payments_within_a_minute_are_suspicious():
        fraud = KeyedHarness(Fraud, key="card", emits="card string, reason string")
        fraud.give(*[{"card": "4000", "amount": 900.0}] * 3)
        assert fraud.emitted == [{"card": "4000", "reason": "3 payments"}]

The code runs through the very class that runs it on Spark's workers; only the states are kept in memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock.connectors.arrow_types import arrow_schema, penstock_type
from penstock.epochs.sequence import Anchor
from penstock.spark.emitted import PORT, port_column
from penstock.spark.faults import WorkerFault, fault_in
from penstock.spark.key_columns import KeyColumns
from penstock.spark.keyed_state import KeyedSettings, KeyedTask
from penstock.spark.numbering import SEQUENCE
from penstock.spark.state_access import Change, Wake
from penstock.spark.state_socket import Key
from penstock.topology.context import Context, PresentEpoch
from penstock.topology.model import Custom, FrozenOptions
from penstock.topology.state import from_milliseconds
from penstock.topology.state_encoding import Remembered, decode
from penstock.topology.values import to_columns, to_emits, to_on_error, to_schema

_OPERATOR = "operator"


@dataclass
class MemoryStates:
    """The states of all keys, in this process."""

    encoded: dict[Key, bytes] = field(default_factory=dict)
    entered: set[tuple[int, Key]] = field(default_factory=set)

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        return [self.encoded.get(key) for key in keys]

    def expect(self, keys: Sequence[Key]) -> None:
        pass

    def save(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.encoded is None:
                self.encoded.pop(change.key, None)
            else:
                self.encoded[change.key] = change.encoded
            if change.strike is not None:
                self.entered.discard((change.strike, change.key))
            if change.enter is not None:
                self.entered.add((change.enter, change.key))

    def due(self, until_ms: int) -> Iterator[list[Wake]]:
        found = [(key, moment) for moment, key in self.entered if moment <= until_ms]
        if found:
            yield sorted(found, key=lambda wake: (wake[1], repr(wake[0])))


@dataclass(frozen=True)
class FailedTuple:
    """A tuple, or a timer, for which the code failed where `on_error` allows it."""

    tuple: Mapping[str, Any]
    error: str


@dataclass
class _Failures:
    noted: list[FailedTuple]

    def note(self, sequence: int, tup: Mapping[str, Any], error: str, at: str) -> None:
        self.noted.append(FailedTuple(dict(tup), error))


class KeyedHarness:
    """One operator with its key, from its first epoch on. Every `give` and `advance` is an epoch of its own.

    `code` is a Bolt class or a function, `with_` what a topology gives under `with`, and `reads` the schema of its
    input where it cannot be guessed from the tuples. What the code raises is raised here, unless `on_error` says
    otherwise: then it is in `failed`.
    """

    def __init__(
        self,
        code: Callable[..., Any],
        *,
        key: str | Sequence[str],
        emits: str | Mapping[str, str],
        with_: Mapping[str, Any] | None = None,
        reads: str | None = None,
        on_error: str = "fail",
        start: datetime = datetime(2024, 1, 1, tzinfo=UTC),
    ) -> None:
        self.time = start
        """The time of the next epoch."""
        self.epoch = 0
        self.failed: list[FailedTuple] = []
        self._operator = Custom(
            _OPERATOR,
            (),
            code=getattr(code, "__qualname__", repr(code)),
            emits=to_emits(emits),
            key=to_columns(key),
            arguments=FrozenOptions(with_ or {}),
            on_error=to_on_error(on_error),
        )
        self._reads = None if reads is None else to_schema(reads)
        self._states = MemoryStates()
        self._by_port: dict[str, list[dict[str, Any]]] = {port: [] for port, _ in self._operator.emits}
        self._key: KeyColumns | None = None
        self._columns: tuple[str, ...] = ()
        self._code = self._loaded(code)

    @property
    def emitted(self) -> list[dict[str, Any]]:
        """All tuples emitted so far; of an operator with several ports, see `emitted_on`."""
        if len(self._by_port) > 1:
            raise ValueError(f"it has several ports: ask for emitted_on({', '.join(map(repr, self._by_port))})")
        return next(iter(self._by_port.values()))

    def emitted_on(self, port: str) -> list[dict[str, Any]]:
        """All tuples emitted so far on one port."""
        return self._by_port[port]

    def give(self, *tuples: Mapping[str, Any]) -> None:
        """An epoch with these tuples."""
        self._run([dict(tup) for tup in tuples], last=False)

    def advance(self, by: timedelta | float) -> None:
        """Move time on, by a timedelta or seconds, and have an epoch without tuples: timers that are due are called."""
        self.time += by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._run([], last=False)

    def finish(self) -> None:
        """The end of bounded input: all timers that are still set are called."""
        self._run([], last=True)

    def state(self, key: Any) -> dict[str, Any]:
        """What is remembered of a key: by name, the value, list or dict."""
        return {name: item.content for name, item in self._remembered(key).items.items()}

    def timers(self, key: Any) -> dict[str, datetime]:
        """The timers that are set for a key: by name, when they are due."""
        return {name: from_milliseconds(due) for name, due in self._remembered(key).timers.items()}

    @property
    def keys(self) -> list[Any]:
        """The keys of which anything is remembered, in no order."""
        return [self._shown(key) for key in self._states.encoded]

    # -- one epoch ------------------------------------------------------------------------------

    def _run(self, tuples: list[dict[str, Any]], last: bool) -> None:
        self.epoch += 1
        present = PresentEpoch(self.epoch, round(self.time.timestamp() * 1000), last)
        context = Context(_OPERATOR, 0, "harness", lambda: present)
        batch = self._batch(tuples) if tuples else None
        key = self._key or KeyColumns(self._operator.key, ("string",) * len(self._operator.key))
        settings = KeyedSettings(self._operator, "", self._columns, key)
        failures = _Failures(self.failed) if self._operator.tolerates else None
        task = KeyedTask(settings, self._code, context, self._states, failures)
        try:
            for emitted in [*(task.give(batch) if batch is not None else ()), *task.finish()]:
                self._take(emitted)
        except WorkerFault as fault:
            raise (fault.__cause__ or fault_in(str(fault)) or fault) from None

    def _batch(self, tuples: list[dict[str, Any]]) -> pa.RecordBatch:
        """The tuples as Spark would hand them over: sorted by key, those of a key in order."""
        ordered = sorted(enumerate(tuples), key=lambda item: repr([item[1][name] for name in self._operator.key]))
        rows = [tup for _, tup in ordered]
        batch = pa.RecordBatch.from_pylist(rows, arrow_schema(self._reads) if self._reads else None)
        self._columns = tuple(batch.schema.names)
        types = tuple(penstock_type(batch.schema.field(name).type) for name in self._operator.key)
        self._key = KeyColumns(self._operator.key, types)
        sequences = [Anchor(self.epoch, 0, position).sequence for position, _ in ordered]
        return pa.RecordBatch.from_arrays(
            [*batch.columns, pa.array(sequences, pa.int64())], names=[*batch.schema.names, SEQUENCE]
        )

    def _take(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            if len(self._by_port) == 1:
                del row[SEQUENCE]
                self.emitted.append(row)
            else:
                port = self._operator.emits[row[PORT]][0]
                self._by_port[port].append(row[port_column(port)])

    def _remembered(self, key: Any) -> Remembered:
        found = (encoded for each, encoded in self._states.encoded.items() if self._shown(each) == key)
        encoded = next(found, None)
        return Remembered() if encoded is None else decode(encoded)

    def _shown(self, key: Key) -> Any:
        assert self._key is not None
        return self._key.shown(key)

    def _loaded(self, code: Callable[..., Any]) -> Any:
        if not inspect.isclass(code):
            return code
        bolt: Any = code()
        bolt.context = Context(_OPERATOR, 0)
        bolt.initialize(**self._operator.arguments)
        return bolt
