"""Run a custom operator over the Arrow batches of one task."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.epochs.record import SEQUENCE_BITS
from penstock.errors import TopologyError
from penstock.spark.emitted import PORT, Emitted, Misfit, batch_for_rows, checked_batch, fitting_batches, port_meant
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.failures import FailureLedger, is_settled
from penstock.spark.faults import WorkerFault
from penstock.spark.mistakes import Storyteller, said, who
from penstock.spark.present_epoch import present_epoch
from penstock.spark.self_acking import SelfAckingTask
from penstock.spark.tuples import many, rows_of
from penstock.spark.watchdog import Hung, watch
from penstock.spark.worker_process import is_task, task_number
from penstock.topology.bolt import Context, Fail
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.model import Custom, ErrorKind
from penstock.topology.parameters import called_with_values, column_parameters, with_context

__all__ = ["INSTANCE", "PORT", "CustomStage"]

INSTANCE = "__instance"
"""The hidden column that tells custom code its instance: a task's own number counts other operators' too."""
_LOADED: dict[tuple[str, str], Any] = {}
"""The user's code of this worker process, by run and operator: bolts are initialised once."""
_ONE = frozenset({tuple, int, float, str, bool})
"""Kinds of what a function may return that are one tuple; others are looked at one by one."""
_CALLS_WHEN_SETTLED = 10
"""How often code is called for a tuple before it counts as failed, once an epoch does without those that failed first:
code that fails by chance would otherwise fail for another one each time the epoch is run."""


@dataclass(frozen=True)
class CustomStage:
    """Everything a worker needs to run one custom operator."""

    run: str
    operator: Custom
    folder: str
    columns: tuple[str, ...]
    """The input columns that the code sees."""
    state: str
    """The run's state folder, where failed tuples are noted."""
    ack_timeout: float | None = None
    """Seconds that a tuple may wait for its ack; None when the operator does not ack by itself."""
    topology: str = ""
    """Its name, from which random numbers are made."""
    kept: tuple[str, ...] = ()
    """The input columns that go past the code."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        with self.running() as ledger:
            yield from self._run(filled, ledger) if self.ack_timeout is None else self._run_self_acking(filled, ledger)

    @contextlib.contextmanager
    def running(self) -> Iterator[FailureLedger | None]:
        """What surrounds the user's code in a task; where to note the tuples that fail, see `ledger`."""
        ledger = self.ledger()
        with self.in_folder():
            yield ledger
        if ledger is not None:
            ledger.close(task_number())

    def ledger(self) -> FailureLedger | None:
        """Where to note the tuples that fail; None where the first one ends the run."""
        if not self.operator.tolerates:
            return None
        keep, state = self.operator.on_error.kind is not ErrorKind.DROP, Path(self.state)
        # A tuple that a window or a join has kept is of an earlier epoch than the one in which it fails.
        epoch = (lambda: present_epoch(state).epoch) if is_task() else None
        return FailureLedger(state, self.operator.name, keep, epoch)

    def calls_allowed(self, sequence: int) -> int:
        """How often the code may be called for a tuple of that tuple's epoch before it counts as failed."""
        if not self.operator.retries:
            return 1
        return _CALLS_WHEN_SETTLED if is_settled(Path(self.state), sequence >> SEQUENCE_BITS) else 1

    def _run(self, batches: Iterator[pa.RecordBatch], ledger: FailureLedger | None) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self.run_batch(batch, self._context(batch), ledger)

    def run_batch(
        self, batch: pa.RecordBatch, context: Context, ledger: FailureLedger | None
    ) -> Iterator[pa.RecordBatch]:
        """What the code gives for one batch, which is not empty."""
        return _Runner(self, self.code(context), context, ledger).run(batch)

    def _run_self_acking(
        self, batches: Iterator[pa.RecordBatch], ledger: FailureLedger | None
    ) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None or self.ack_timeout is None:
            return
        context = self._context(first)
        calls = self.calls_allowed(first.column(SEQUENCE)[0].as_py())
        task = SelfAckingTask(
            self.operator, self.folder, self.columns, self.code(context), context, self.ack_timeout, ledger, calls
        )
        for batch in itertools.chain([first], batches):
            yield from task.give(batch)
        yield from task.finish()

    def context(self, instance: int) -> Context:
        """What the code is told of where and when it runs."""
        return Context(self.operator.name, instance, self.topology, lambda: present_epoch(Path(self.state)))

    def _context(self, batch: pa.RecordBatch) -> Context:
        return self.context(batch.column(INSTANCE)[0].as_py())

    def code(self, context: Context) -> Any:
        """The user's code, ready to be called; the same in every task of this worker process."""
        key = (self.run, self.operator.name)
        if key not in _LOADED:
            _LOADED[key] = self._load(context)
        return _LOADED[key]

    def _load(self, context: Context) -> Any:
        try:
            module, _, name = self.operator.code.partition(":")
            name, dot, method = name.partition(".")
            target = load_user_object(f"{module}:{name}", Path(self.folder))
            if dot:
                # DADSTORM's way: a method of a class, called with the fields as one list.
                bound = getattr(target(), method)
                return lambda tup, /: bound(list(tup))
            if inspect.isclass(target):
                bolt: Any = target()
                bolt.context = context
                bolt.initialize(**self.operator.arguments)
                return bolt
            return target
        except TopologyError as error:
            raise WorkerFault("operator", f"{who(self.operator)}: {error}") from error
        except (Exception, SystemExit) as error:
            story = Storyteller(self.operator, self.folder).told(error, None, "initialize")
            raise WorkerFault("operator", story) from error

    @contextlib.contextmanager
    def in_folder(self) -> Iterator[None]:
        """Relative paths in the user's code mean the topology's folder; what it prints goes to the log."""
        before = Path.cwd()
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        finally:
            os.chdir(before)


class _Runner:
    """Runs the code over one batch. Without a ledger the first tuple that fails ends the run."""

    def __init__(self, stage: CustomStage, code: Any, context: Context, ledger: FailureLedger | None) -> None:
        self._stage = stage
        self._context = context
        self._operator = stage.operator
        self._code = code
        self._ledger = ledger
        self._story = Storyteller(stage.operator, stage.folder)
        self._done = 0
        self._row: Callable[[], int] = lambda: self._done
        """Which row of the batch it is at."""
        self._current: Any = None

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._sequences = batch.column(SEQUENCE)
        self._calls = self._stage.calls_allowed(self._sequence(0))
        # As many tuples are done as there are rows before the present one.
        self._context.seeded_by(lambda: self._sequence(min(self._row(), batch.num_rows - 1)))
        try:
            with watch(self._operator.timeout, lambda: self._row()):
                if hasattr(self._code, "process"):
                    output = self._run_bolt(batch)
                elif takes_batches(self._code):
                    produced = self._run_batches(batch, 0, self._bound(self._code))
                else:
                    returned = self._run_function(batch)
        except Hung as error:
            raise WorkerFault("operator", self._story.hung(error, self._current)) from error
        if takes_batches(self._code):
            yield from produced
        elif hasattr(self._code, "process"):
            yield from self._build(batch, output)
        else:
            yield from self._build_returned(batch, returned)

    def _sequence(self, row: int) -> int:
        sequence: int = self._sequences[row].as_py()
        return sequence

    # -- the three shapes -----------------------------------------------------------------------

    def _run_function(self, batch: pa.RecordBatch) -> list[Any]:
        """For each row, what the function returned for it: a tuple, or a list of any number."""
        returned: list[Any] = []
        calls = self._calls_of(batch)
        # Its length is the row: nothing else has to be counted for each tuple.
        self._row = returned.__len__
        # Entered anew after each tuple that fails: what is done for every tuple is as little as can be.
        while len(returned) < batch.num_rows:
            try:
                for each in calls:
                    # A list may be used again for the next tuple, and a generator does its work only now.
                    returned.append(each if type(each) in _ONE else list(many(each)))
                if len(returned) < batch.num_rows:
                    raise StopIteration  # let out by the function, it ended the loop
            except BaseException as error:
                returned.append(self._after_row(error, batch, len(returned)))
        return returned

    def _calls_of(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """Calls the function for each row in turn: with a tuple, or with the values that its parameters are named
        after, for which no tuple is made."""
        names = column_parameters(self._code, self._stage.columns, self._operator.arguments)
        if names is None:
            return map(self._bound(self._code), rows_of(batch, self._stage.columns))
        arguments = with_context(self._code, self._operator.arguments, self._context)
        function = called_with_values(self._code, names, arguments)
        return map(function, *(batch.column(name).to_pylist() for name in names))

    def _after_row(self, error: BaseException, batch: pa.RecordBatch, row: int) -> list[Any]:
        one = batch.slice(row, 1)
        self._current = next(rows_of(one, self._stage.columns))
        return self._after(error, row, lambda: list(many(next(self._calls_of(one)))))

    def _run_bolt(self, batch: pa.RecordBatch) -> list[Emitted]:
        output: list[Emitted] = []
        row = 0
        failed: str | None = None
        ports = {port for port, _ in self._operator.emits}

        def emit(port: str, values: Any, anchor: Any) -> None:
            if port not in ports:
                port = port_meant(port, self._operator.emits)
            if anchor is not None and anchor is not self._current:
                raise ValueError(f"emit(…, anchor={anchor!r}): only the tuple that process was given can be the anchor")
            output.append((port, row, values))

        def ack(tup: Any) -> None:
            raise ValueError(f"ack({tup!r}): it is acked when process returns, unless the class has auto_ack = False")

        def fail(tup: Any, reason: str) -> None:
            nonlocal failed
            if tup is not self._current:
                raise ValueError(f"fail({tup!r}): only the tuple that process was given can be failed")
            failed = reason

        def process(tup: Any) -> list[Emitted]:
            """What it emits for a tuple is in `output` already: nothing more to put there."""
            nonlocal failed
            failed, before = None, len(output)
            try:
                self._code.process(tup)
                if failed is not None:
                    raise Fail(failed)
            except BaseException:
                del output[before:]
                raise
            return []

        self._code._emit = emit
        self._code._ack = ack
        self._code._fail = fail
        self._code.context = self._context
        for row, tup in enumerate(rows_of(batch, self._stage.columns)):  # emit reads the row
            self._current = tup
            try:
                process(tup)
            except BaseException as error:
                self._after(error, row, partial(process, tup))
            self._done += 1
        return output

    def _after(self, error: BaseException, row: int, again: Callable[[], list[Any]]) -> list[Any]:
        """The code failed for a tuple: what it gives when it is called again, where that may help; else note it."""
        for _ in range(self._calls - 1):
            if not isinstance(error, Exception):
                break
            try:
                return again()
            except BaseException as next_error:
                error = next_error
        self._failed(row, error)
        return []

    def _run_batches(
        self, batch: pa.RecordBatch, first: int, function: Callable[[Any], Any]
    ) -> list[pa.RecordBatch]:
        """What the function gives for a batch; if it fails, for its halves, down to single tuples."""
        visible = batch.select(list(self._stage.columns))
        call = partial(self._call_with_batch, function, visible, first)
        try:
            return call()
        except BaseException as error:
            if self._ledger is None:
                self._failed(first, error)
            if batch.num_rows > 1 and isinstance(error, (Exception, SystemExit)):
                middle = batch.num_rows // 2
                return [
                    *self._run_batches(batch.slice(0, middle), first, function),
                    *self._run_batches(batch.slice(middle), first + middle, function),
                ]
            self._current = next(rows_of(visible, self._stage.columns))
            return self._after(error, first, call)
        finally:
            self._done += 1

    def _call_with_batch(self, function: Callable[[Any], Any], visible: pa.RecordBatch, first: int) -> list[Any]:
        returned = function(visible)
        produced = [returned] if isinstance(returned, (pa.RecordBatch, pa.Table)) else list(many(returned))
        _, schema = self._operator.emits[0]
        return [
            checked_batch(part, schema, self._sequence(first))
            for item in produced
            for part in (item.to_batches() if isinstance(item, pa.Table) else [item])
        ]

    def _bound(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        arguments = with_context(function, self._operator.arguments, self._context)
        return (lambda tup: function(tup, **arguments)) if arguments else function

    # -- what they give, and where they fail ----------------------------------------------------

    def _build_returned(self, batch: pa.RecordBatch, returned: list[Any]) -> list[pa.RecordBatch]:
        """What a function gave. One tuple for every row, the usual case, is put into columns as it is."""
        (port, schema), *_ = self._operator.emits
        kinds = set(map(type, returned))
        if len(self._operator.emits) == 1 and (kinds == {tuple} or (kinds < _ONE and tuple not in kinds)):
            with contextlib.suppress(Misfit):
                return [batch_for_rows(returned, schema, self._sequences, self._kept(batch))]
        emitted = ((row, each if type(each) is list else [each]) for row, each in enumerate(returned))
        return self._build(batch, [(port, row, one) for row, many_of in emitted for one in many_of])

    def _build(self, batch: pa.RecordBatch, output: list[Emitted]) -> list[pa.RecordBatch]:
        def note(row: int, what: str) -> None:
            tup = next(rows_of(batch.slice(row, 1), self._stage.columns))
            self._note(row, tup, what, "")

        try:
            sequences = self._sequences.to_pylist()
            emits, noted = self._operator.emits, note if self._ledger else None
            return fitting_batches(output, emits, sequences, noted, self._kept(batch))
        except Misfit as misfit:
            raise WorkerFault("operator", f"{who(self._operator)}: {misfit}") from misfit

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return batch.select(list(self._stage.kept)) if self._stage.kept else None

    def _failed(self, row: int, error: BaseException) -> None:
        """The code failed for the present tuple: note it, or end the run."""
        if isinstance(error, (WorkerFault, Hung, GeneratorExit)):
            raise error
        if isinstance(error, Misfit) and self._ledger is None:
            raise WorkerFault("operator", f"{who(self._operator)}: {error}") from error
        if self._ledger is None or isinstance(error, KeyboardInterrupt):
            raise WorkerFault("operator", self._story.told(error, self._current)) from error
        self._note(row, self._current, said(error), self._story.place(error))

    def _note(self, row: int, tup: Any, error: str, place: str) -> None:
        assert self._ledger is not None
        by_name = dict(zip(self._stage.columns, tup, strict=True))
        self._ledger.note(self._sequence(row), by_name, error, place)
