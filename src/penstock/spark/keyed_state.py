"""Run custom code over the tuples of one task, key by key, with what is remembered of each key.

However many tuples a key has in an epoch, its state is asked for once and written at most once; and the states of many
keys travel together. What a tuple that fails has changed is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

from penstock.epochs.sequence import timer_sequence
from penstock.spark.emitted import Emitted, Misfit, batches_of, misfits, port_meant
from penstock.spark.faults import WorkerFault
from penstock.spark.key_columns import KeyColumns, Run
from penstock.spark.mistakes import Storyteller, said, who
from penstock.spark.numbering import SEQUENCE
from penstock.spark.ported_tuples import ported_tuples
from penstock.spark.state_access import Change, StateAccess, Wake
from penstock.spark.state_socket import Key
from penstock.spark.tuples import many, rows_of
from penstock.spark.watchdog import Hung, watch
from penstock.topology.bolt import Bolt, Fail, has_timers
from penstock.topology.context import Context
from penstock.topology.model import Custom
from penstock.topology.parameters import called_with_values, column_parameters, with_context
from penstock.topology.state import KeyedState, Timers, drop_empty, next_wake
from penstock.topology.state_encoding import NotPlain, Remembered, decode, encode

KEYS_AT_ONCE = 250
"""Small enough that a batch has several such portions: while one is processed, the next is fetched."""
_END_OF_TIME = (1 << 63) - 1


class Failures(Protocol):
    """Who is told of tuples that fail; see `failures.FailureLedger`."""

    def note(self, sequence: int, tup: Mapping[str, Any], error: str, at: str) -> None: ...


@dataclass(frozen=True)
class KeyedSettings:
    """What a task must know of its operator."""

    operator: Custom
    folder: str
    columns: tuple[str, ...]
    """The input columns that the code sees."""
    key: KeyColumns
    calls: int = 1
    """How often a tuple that fails is given to the code before it counts as failed."""
    ports: Mapping[str, tuple[str, ...]] | None = None
    """The columns of each input port, where the operator has named ones; see `ported_tuples`."""


@dataclass(frozen=True)
class _Work:
    """What the code is to be called for, of one key: tuples or timers, in neighbouring rows."""

    key: Key
    first: int
    given: Sequence[Any]


@dataclass
class _Attempt:
    """What calling the code has given."""

    states: list[KeyedState]
    output: list[Emitted]
    failed: dict[int, tuple[str, str]]
    """By row, the error and the user's own line."""


class KeyedTask:
    """Gives the code the tuples of one task. `give` each batch, sorted by key and sequence, then `finish` once.

    Without a ledger of failures the first tuple that fails ends the run.
    """

    def __init__(
        self,
        settings: KeyedSettings,
        code: Any,
        context: Context,
        states: StateAccess,
        failures: Failures | None,
    ) -> None:
        self._settings = settings
        self._operator = settings.operator
        self._context = context
        self._states = states
        self._failures = failures
        self._story = Storyteller(settings.operator, settings.folder)
        self._caller: _BoltCaller | _FunctionCaller = (
            _BoltCaller(code, settings.operator, context)
            if hasattr(code, "process")
            else _FunctionCaller(code, settings, context)
        )
        self._now = context.present.time_ms
        context.seeded_by(lambda: (context.key, context.epoch))
        self._held: tuple[Key, bytes | None, Remembered] | None = None
        """The last key so far, whose tuples may go on in the next batch: what is stored of it, and its state by now."""
        self._done = 0

    def give(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Have the code process the batch; what it emits."""
        if not batch.num_rows:
            return
        ports = self._settings.ports
        names: list[str] = []
        if ports is None:
            tuples = list(rows_of(batch, self._settings.columns))
        else:
            tuples, names = ported_tuples(batch, ports)
        sequences: list[int] = batch.column(SEQUENCE).to_pylist()

        def shown(row: int) -> dict[str, Any]:
            columns = self._settings.columns if ports is None else ports[names[row]]
            return dict(zip(columns, tuples[row], strict=True))

        def process(row: int, tup: Any, output: list[Emitted]) -> None:
            self._context.port = names[row]
            self._caller.process(row, tup, output)

        call = self._caller.process if ports is None else process
        runs = self._settings.key.runs(batch)
        portion = list(islice(runs, KEYS_AT_ONCE))
        while portion:
            following = list(islice(runs, KEYS_AT_ONCE))
            yield from self._process(portion, following, tuples, sequences, call, shown)
            portion = following

    def finish(self) -> Iterator[pa.RecordBatch]:
        """There are no more tuples: call the timers that are due; what they emit."""
        if self._held is not None:
            self._save([self._closed(*self._held)])
            self._held = None
        until = _END_OF_TIME if self._context.present.last else self._now
        for due in self._states.due(until):
            for first in range(0, len(due), KEYS_AT_ONCE):
                yield from self._wake(due[first : first + KEYS_AT_ONCE], until)

    # -- tuples ---------------------------------------------------------------------------------

    def _process(
        self,
        runs: list[Run],
        following: list[Run],
        tuples: list[Any],
        sequences: list[int],
        call: Callable[[int, Any, list[Emitted]], None],
        shown: Callable[[int], dict[str, Any]],
    ) -> Iterator[pa.RecordBatch]:
        stored, current = self._opened([run.key for run in runs])
        if following:
            # They are fetched while the code is called for these; a batch has every key once.
            self._states.expect([run.key for run in following])
        work = [_Work(key, first, tuples[first:end]) for key, first, end in runs]
        attempt, batches = self._carried_out(work, current, sequences, call, shown)
        changes = [
            self._closed(run.key, before, state.remembered)
            for run, before, state in zip(runs[:-1], stored, attempt.states, strict=False)
            if state.touched
        ]
        self._held = (runs[-1].key, stored[-1], attempt.states[-1].remembered)
        self._save(changes)
        yield from batches

    def _opened(self, keys: list[Key]) -> tuple[list[bytes | None], list[bytes | None]]:
        """What is stored of each key, and what is remembered by now: of one whose tuples go on, that is more."""
        if self._held is None:
            stored = self._states.load(keys)
            return stored, stored
        key, before, remembered = self._held
        if key != keys[0]:
            self._save([self._closed(*self._held)])
            stored = self._states.load(keys)
            return stored, stored
        others = self._states.load(keys[1:])
        return [before, *others], [self._encoded(key, remembered), *others]

    def _closed(self, key: Key, stored: bytes | None, remembered: Remembered) -> Change | None:
        """What must be written of a key that has been processed."""
        drop_empty(remembered)
        entered = remembered.wake
        if remembered.empty:
            return None if stored is None else Change(key, None, strike=entered)
        wanted = next_wake(remembered)
        # To be woken too early costs less than to move the entry with every tuple.
        sooner = wanted is not None and (entered is None or wanted < entered)
        if sooner:
            remembered.wake = wanted
        encoded = self._encoded(key, remembered)
        if encoded == stored:
            return None
        return Change(key, encoded, wanted, entered) if sooner else Change(key, encoded)

    # -- timers ---------------------------------------------------------------------------------

    def _wake(self, due: list[Wake], until: int) -> Iterator[pa.RecordBatch]:
        """Call the timers of these keys that are due, and drop what has lived long enough."""
        loaded = self._states.load([key for key, _ in due])
        work: list[_Work] = []
        names: list[tuple[Key, str]] = []
        for (key, _), stored in zip(due, loaded, strict=True):
            timers = decode(stored).timers if stored else {}
            ready = sorted((moment, name) for name, moment in timers.items() if moment <= until)
            work.append(_Work(key, len(names), ready))
            names += [(key, name) for _, name in ready]

        def shown(row: int) -> dict[str, Any]:
            key, name = names[row]
            values = self._settings.key.values(key)
            return {**dict(zip(self._settings.key.names, values, strict=True)), "timer": name}

        sequences = [timer_sequence(self._context.epoch)] * len(names)
        attempt, batches = self._carried_out(work, loaded, sequences, self._caller.on_timer, shown)
        woken = zip(due, attempt.states, strict=True)
        self._save([self._woken(key, moment, state.remembered, until) for (key, moment), state in woken])
        yield from batches

    def _woken(self, key: Key, moment: int, remembered: Remembered, until: int) -> Change:
        drop_empty(remembered)
        remembered.wake = None
        if remembered.empty:
            return Change(key, None, strike=moment)
        wanted = next_wake(remembered)
        if wanted is not None and until != _END_OF_TIME:
            # A timer for now that a timer has set is for the next epoch: else it could go on for ever.
            remembered.wake = max(wanted, self._now + 1)
        return Change(key, self._encoded(key, remembered), remembered.wake, moment)

    # -- calling the code -----------------------------------------------------------------------

    def _carried_out(
        self,
        work: list[_Work],
        before: list[bytes | None],
        sequences: list[int],
        call: Callable[[int, Any, list[Emitted]], None],
        shown: Callable[[int], dict[str, Any]],
    ) -> tuple[_Attempt, list[pa.RecordBatch]]:
        """Call the code for all the work. What it emits for a row must fit, or the row has failed: then all of it is
        done again from the states before, without such rows."""
        misfit_rows: dict[int, str] = {}
        while True:
            try:
                with watch(self._operator.timeout, lambda: self._done):
                    attempt = self._attempt(work, before, call, misfit_rows)
            except Hung as error:
                raise WorkerFault("operator", self._story.hung(error, self._caller.current)) from error
            try:
                batches = list(batches_of(attempt.output, self._operator.emits, sequences))
            except Misfit as misfit:
                if self._failures is None:
                    raise WorkerFault("operator", f"{who(self._operator)}: {misfit}") from misfit
                misfit_rows |= misfits(attempt.output, self._operator.emits)
                continue
            failed = attempt.failed | {row: (what, "") for row, what in misfit_rows.items()}
            if self._failures is not None:
                for row in sorted(failed):
                    self._failures.note(sequences[row], shown(row), *failed[row])
            return attempt, batches

    def _attempt(
        self,
        work: list[_Work],
        before: list[bytes | None],
        call: Callable[[int, Any, list[Emitted]], None],
        left_out: dict[int, str],
    ) -> _Attempt:
        attempt = _Attempt([], [], {})
        output, undoable = attempt.output, self._failures is not None
        for item, encoded in zip(work, before, strict=True):
            state = KeyedState(Remembered() if encoded is None else decode(encoded), self._now, undoable=undoable)
            key = self._settings.key.shown(item.key)
            self._context.turn_to((key, state, Timers(state, self._caller.handles_timers)))
            attempt.states.append(state)
            for row, given in enumerate(item.given, item.first):
                if row in left_out:
                    continue
                if undoable:
                    state.begin()
                number = len(output)
                try:
                    call(row, given, output)
                except BaseException as error:
                    del output[number:]
                    state.undo()
                    self._again(error, call, row, given, state, attempt)
                self._done += 1
        self._context.turn_to(None)
        return attempt

    def _again(
        self,
        error: BaseException,
        call: Callable[[int, Any, list[Emitted]], None],
        row: int,
        given: Any,
        state: KeyedState,
        attempt: _Attempt,
    ) -> None:
        """The code failed: call it again where that may help, else the row has failed, or the run ends.

        A timer has had its call: no source tuple is replayed for it, so nothing hangs on who fails.
        """
        for _ in range(0 if self._caller.method else self._settings.calls - 1):
            if not isinstance(error, Exception):
                break
            number = len(attempt.output)
            try:
                call(row, given, attempt.output)
                return
            except BaseException as next_error:
                error = next_error
                del attempt.output[number:]
                state.undo()
        if isinstance(error, (WorkerFault, Hung, GeneratorExit)):
            raise error
        if self._failures is None or isinstance(error, KeyboardInterrupt):
            told = self._story.told(error, self._caller.current, self._caller.method)
            raise WorkerFault("operator", told) from error
        attempt.failed[row] = said(error), self._story.place(error)

    # -- what is written ------------------------------------------------------------------------

    def _encoded(self, key: Key, remembered: Remembered) -> bytes:
        try:
            return encode(remembered)
        except NotPlain as error:
            shown = self._settings.key.shown(key)
            raise WorkerFault("operator", f"{who(self._operator)}: in the state of key {shown!r}: {error}") from error

    def _save(self, changes: Iterable[Change | None]) -> None:
        wanted = [change for change in changes if change is not None]
        if wanted:
            self._states.save(wanted)


class _FunctionCaller:
    """Calls a function of a tuple."""

    handles_timers = False
    method = ""

    def __init__(self, function: Callable[..., Any], settings: KeyedSettings, context: Context) -> None:
        operator = settings.operator
        arguments = with_context(function, operator.arguments, context)
        # The tuples of several ports have several columns.
        columns = settings.columns if settings.ports is None else ()
        names = column_parameters(function, columns, operator.arguments)
        self._places = None if names is None else [columns.index(name) for name in names]
        self._function = function if names is None else called_with_values(function, names, arguments)
        self._arguments = arguments if names is None else {}
        self._port = operator.emits[0][0]
        self.current: Any = None

    def process(self, row: int, tup: Any, output: list[Emitted]) -> None:
        self.current = tup
        given = (tup,) if self._places is None else (tup[place] for place in self._places)
        for emitted in many(self._function(*given, **self._arguments)):
            output.append((self._port, row, emitted))

    def on_timer(self, row: int, timer: tuple[int, str], output: list[Emitted]) -> None:
        raise TypeError("a function is not called by timers")


class _BoltCaller:
    """Calls a bolt."""

    def __init__(self, bolt: Bolt, operator: Custom, context: Context) -> None:
        bolt.context = context
        bolt._emit, bolt._ack, bolt._fail = self._emit, self._ack, self._fail
        self._bolt = bolt
        self._emits = operator.emits
        self._ports = {port for port, _ in operator.emits}
        self._context = context
        self._row = 0
        self._output: list[Emitted] = []
        self._failed: str | None = None
        self.current: Any = None
        self.method = ""
        self.handles_timers = has_timers(type(bolt))

    def process(self, row: int, tup: Any, output: list[Emitted]) -> None:
        self.current, self._row, self._output, self._failed = tup, row, output, None
        self._bolt.process(tup)
        if self._failed is not None:
            raise Fail(self._failed)

    def on_timer(self, row: int, timer: tuple[int, str], output: list[Emitted]) -> None:
        moment, name = timer
        timers = self._context.state.remembered.timers
        if timers.get(name) != moment:
            return  # another timer of the key has moved it, or cancelled it
        del timers[name]
        self.current, self._row, self._output, self.method = None, row, output, "on_timer"
        self._bolt.on_timer(name)

    def _emit(self, port: str, values: Any, anchor: Any) -> None:
        if port not in self._ports:
            port = port_meant(port, self._emits)
        if anchor is not None and anchor is not self.current:
            raise ValueError(f"emit(…, anchor={anchor!r}): only the tuple that process was given can be the anchor")
        self._output.append((port, self._row, values))

    def _ack(self, tup: Any) -> None:
        raise ValueError(f"ack({tup!r}): a tuple is acked when process returns")

    def _fail(self, tup: Any, reason: str) -> None:
        if self.current is None or tup is not self.current:
            raise ValueError(f"fail({tup!r}): only the tuple that process was given can be failed")
        self._failed = reason
