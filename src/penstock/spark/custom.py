"""Run a custom operator over the Arrow batches of one task."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.epochs.record import SEQUENCE_BITS
from penstock.errors import TopologyError
from penstock.spark.emitted import PORT, Emitted, Misfit, batches_of, checked_batch, misfits
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.failures import FailureLedger, is_settled
from penstock.spark.faults import WorkerFault
from penstock.spark.tuples import many, rows_of
from penstock.spark.watchdog import Hung, watch
from penstock.spark.worker_process import task_number
from penstock.topology.bolt import Context, Fail
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.model import Custom, ErrorKind

__all__ = ["INSTANCE", "PORT", "CustomStage"]

INSTANCE = "__instance"
"""The hidden column that tells custom code its instance: a task's own number counts other operators' too."""
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LOADED: dict[tuple[str, str], Any] = {}
"""The user's code of this worker process, by run and operator: bolts are initialised once."""
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

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep = self.operator.on_error.kind is not ErrorKind.DROP
        ledger = FailureLedger(Path(self.state), self.operator.name, keep) if self.operator.tolerates else None
        with self._in_folder():
            for batch in batches:
                if batch.num_rows:
                    context = Context(self.operator.name, batch.column(INSTANCE)[0].as_py())
                    yield from self._runner(context, ledger).run(batch)
        if ledger is not None:
            ledger.close(task_number())

    def _runner(self, context: Context, ledger: FailureLedger | None) -> _Runner:
        key = (self.run, self.operator.name)
        if key not in _LOADED:
            _LOADED[key] = self._load(context)
        return _Runner(self, _LOADED[key], context, ledger)

    def _load(self, context: Context) -> Any:
        try:
            module, _, name = self.operator.code.partition(":")
            name, dot, method = name.partition(".")
            target = load_user_object(f"{module}:{name}", Path(self.folder))
            if dot:
                # DADSTORM's way: a method of a class, called with the fields as one list.
                bound = getattr(target(), method)
                return lambda tup: bound(list(tup))
            if inspect.isclass(target):
                bolt: Any = target()
                bolt.context = context
                bolt.initialize(**self.operator.arguments)
                return bolt
            return target
        except TopologyError as error:
            raise WorkerFault("operator", f"{_who(self.operator)}: {error}") from error
        except (Exception, SystemExit) as error:
            raise WorkerFault("operator", _raised(self, error, None, "initialize")) from error

    @contextlib.contextmanager
    def _in_folder(self) -> Iterator[None]:
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
        self._done = 0
        self._current: Any = None

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._sequences: list[int] = batch.column(SEQUENCE).to_pylist()
        self._calls = self._calls_allowed()
        try:
            with watch(self._operator.timeout, lambda: self._done):
                if hasattr(self._code, "process"):
                    output = self._run_bolt(batch)
                elif takes_batches(self._code):
                    produced = self._run_batches(batch, 0, self._bound(self._code))
                else:
                    output = self._run_function(batch)
        except Hung as error:
            raise WorkerFault("operator", self._hung(error)) from error
        if takes_batches(self._code):
            yield from produced
        else:
            yield from self._build(batch, output)

    # -- the three shapes -----------------------------------------------------------------------

    def _run_function(self, batch: pa.RecordBatch) -> list[Emitted]:
        function = self._bound(self._code)
        port = self._operator.emits[0][0]
        output: list[Emitted] = []
        for row, tup in enumerate(rows_of(batch, self._stage.columns)):
            self._current = tup
            try:
                output.extend([(port, row, emitted) for emitted in many(function(tup))])
            except BaseException as error:
                again = partial(lambda row, tup: [(port, row, emitted) for emitted in many(function(tup))], row, tup)
                output.extend(self._after(error, row, again))
            self._done += 1
        return output

    def _run_bolt(self, batch: pa.RecordBatch) -> list[Emitted]:
        output: list[Emitted] = []
        row = 0
        failed: str | None = None
        ports = {port for port, _ in self._operator.emits}
        only = self._operator.emits[0][0] if len(ports) == 1 else None

        def emit(port: str, values: Any) -> None:
            if port not in ports:
                if port or only is None:
                    known = ", ".join(repr(name) for name in sorted(ports)) or "none"
                    raise ValueError(f"no output port {port!r}; the ports are {known}")
                port = only
            output.append((port, row, values))

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
            checked_batch(part, schema, self._sequences[first])
            for item in produced
            for part in (item.to_batches() if isinstance(item, pa.Table) else [item])
        ]

    def _bound(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        arguments = dict(self._operator.arguments)
        with contextlib.suppress(TypeError, ValueError):  # functions written in C may not tell
            if "context" in inspect.signature(function).parameters:
                arguments["context"] = self._context
        if not arguments:
            return function
        return lambda tup: function(tup, **arguments)

    # -- what they give, and where they fail ----------------------------------------------------

    def _build(self, batch: pa.RecordBatch, output: list[Emitted]) -> list[pa.RecordBatch]:
        try:
            return list(batches_of(output, self._operator.emits, self._sequences))
        except Misfit as misfit:
            if self._ledger is None:
                raise WorkerFault("operator", f"{_who(self._operator)}: {misfit}") from misfit
        wrong = misfits(output, self._operator.emits)
        tuples = list(rows_of(batch, self._stage.columns))
        for row, what in wrong.items():
            self._note(row, tuples[row], what, "")
        fitting = [item for item in output if item[1] not in wrong]
        return list(batches_of(fitting, self._operator.emits, self._sequences))

    def _failed(self, row: int, error: BaseException) -> None:
        """The code failed for the present tuple: note it, or end the run."""
        if isinstance(error, (WorkerFault, Hung, GeneratorExit)):
            raise error
        if isinstance(error, Misfit) and self._ledger is None:
            raise WorkerFault("operator", f"{_who(self._operator)}: {error}") from error
        if self._ledger is None or isinstance(error, KeyboardInterrupt):
            raise WorkerFault("operator", _raised(self._stage, error, self._current)) from error
        frame = _own_frame(self._stage, error)
        place = "" if frame is None else f"{_within(frame.filename, self._stage.folder)}:{frame.lineno}"
        self._note(row, self._current, _said(error), place)

    def _note(self, row: int, tup: Any, error: str, place: str) -> None:
        assert self._ledger is not None
        by_name = dict(zip(self._stage.columns, tup, strict=True))
        self._ledger.note(self._sequences[row], by_name, error, place)

    def _calls_allowed(self) -> int:
        if not self._operator.retries:
            return 1
        settled = is_settled(Path(self._stage.state), self._sequences[0] >> SEQUENCE_BITS)
        return _CALLS_WHEN_SETTLED if settled else 1

    def _hung(self, error: Hung) -> str:
        place = _own_line(self._stage, error)
        return (
            f"{_who(self._operator)} did not finish a tuple within {self._operator.timeout:g} seconds{place}\n"
            f"  tuple: {self._current!r}\n"
            "  make it faster, or raise the operator's `timeout`"
        )


def _raised(stage: CustomStage, error: BaseException, tup: Any, method: str = "") -> str:
    """What a user needs to find their mistake: the operator, their own line, the error, the tuple."""
    place = _own_line(stage, error)
    match error:
        case SystemExit():
            what = f"called sys.exit({error.code!r})"
        case Fail():
            what = f"failed a tuple: {error}"
        case _:
            what = f"raised {_said(error)}"
    tuple_line = "" if tup is None else f"\n  tuple: {tup!r}"
    return f"{_who(stage.operator)}{' in ' + method if method else ''} {what}{place}{tuple_line}"


def _said(error: BaseException) -> str:
    match error:
        case Fail() | Misfit():
            return str(error)
        case SystemExit():
            return f"sys.exit({error.code!r})"
        case _:
            return f"{type(error).__name__}: {error}"


def _own_line(stage: CustomStage, error: BaseException) -> str:
    frame = _own_frame(stage, error)
    return "" if frame is None else f" at {frame.filename}:{frame.lineno}\n  {frame.line}"


def _own_frame(stage: CustomStage, error: BaseException) -> traceback.FrameSummary | None:
    """The last line of the user's own code that the error passed through, rather than a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    own = [frame for frame in others if Path(frame.filename).is_relative_to(stage.folder)] or others
    return own[-1] if own else None


def _within(file: str, folder: str) -> str:
    return str(Path(file).relative_to(folder)) if Path(file).is_relative_to(folder) else file


def _who(operator: Custom) -> str:
    where = f" ({operator.where})" if operator.where.line else ""
    return f"operator '{operator.name}'{where}: {operator.code}"
