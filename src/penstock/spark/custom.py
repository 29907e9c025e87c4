"""Run a custom operator over the Arrow batches of one task."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.arrow_types import arrow_type
from penstock.errors import TopologyError
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.faults import WorkerFault
from penstock.spark.tuples import as_values, many, rows_of
from penstock.spark.watchdog import Hung, watch
from penstock.topology.bolt import Context
from penstock.topology.code import load_user_object
from penstock.topology.model import Custom
from penstock.topology.schema import Schema

PORT = "__port"
INSTANCE = "__instance"
"""The hidden column that tells custom code its instance: a task's own number counts other operators' too."""
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LOADED: dict[tuple[str, str], Any] = {}
"""The user's code of this worker process, by run and operator: bolts are initialised once."""


@dataclass(frozen=True)
class CustomStage:
    """Everything a worker needs to run one custom operator."""

    run: str
    operator: Custom
    folder: str
    columns: tuple[str, ...]
    """The input columns that the code sees."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._in_folder():
            for batch in batches:
                if batch.num_rows:
                    context = Context(self.operator.name, batch.column(INSTANCE)[0].as_py())
                    yield from self._runner(context).run(batch)

    def _runner(self, context: Context) -> _Runner:
        key = (self.run, self.operator.name)
        if key not in _LOADED:
            _LOADED[key] = self._load(context)
        return _Runner(self, _LOADED[key], context)

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
    def __init__(self, stage: CustomStage, code: Any, context: Context) -> None:
        self._stage = stage
        self._context = context
        self._operator = stage.operator
        self._code = code
        self._done = 0
        self._current: Any = None

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        operator = self._operator
        try:
            with watch(operator.timeout, lambda: self._done):
                if hasattr(self._code, "process"):
                    output = self._run_bolt(batch)
                elif takes_batches(self._code):
                    yield from self._run_batches(batch)
                    return
                else:
                    output = self._run_function(batch)
        except (WorkerFault, GeneratorExit):
            raise
        except Hung as error:
            raise WorkerFault("operator", self._hung(error)) from error
        except BaseException as error:  # sys.exit and KeyboardInterrupt in the user's code included
            raise WorkerFault("operator", _raised(self._stage, error, self._current)) from error
        yield from self._build(output)

    # -- the three shapes -----------------------------------------------------------------------

    def _run_function(self, batch: pa.RecordBatch) -> list[tuple[str, int, Any]]:
        function = self._bound(self._code)
        port = self._operator.emits[0][0]
        output = []
        sequences = batch.column(SEQUENCE).to_pylist()
        for sequence, tup in zip(sequences, rows_of(batch, self._stage.columns), strict=True):
            self._current = tup
            output.extend([(port, sequence, emitted) for emitted in many(function(tup))])
            self._done += 1
        return output

    def _run_bolt(self, batch: pa.RecordBatch) -> list[tuple[str, int, Any]]:
        output: list[tuple[str, int, Any]] = []
        sequence = 0
        ports = {port for port, _ in self._operator.emits}
        only = self._operator.emits[0][0] if len(ports) == 1 else None

        def emit(port: str, values: Any) -> None:
            if port not in ports:
                if port or only is None:
                    known = ", ".join(repr(name) for name in sorted(ports)) or "none"
                    raise ValueError(f"no output port {port!r}; the ports are {known}")
                port = only
            output.append((port, sequence, values))

        self._code._emit = emit
        self._code.context = self._context
        sequences = batch.column(SEQUENCE).to_pylist()
        for sequence, tup in zip(sequences, rows_of(batch, self._stage.columns), strict=True):  # noqa: B007  # emit reads it
            self._current = tup
            self._code.process(tup)
            self._done += 1
        return output

    def _run_batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        function = self._bound(self._code)
        _, schema = self._operator.emits[0]
        visible = batch.select(list(self._stage.columns))
        first = batch.column(SEQUENCE)[0].as_py()
        returned = function(visible)
        produced = [returned] if isinstance(returned, (pa.RecordBatch, pa.Table)) else list(many(returned))
        self._done += 1
        for item in produced:
            parts = item.to_batches() if isinstance(item, pa.Table) else [item]
            for part in parts:
                yield self._checked_batch(part, schema, first)

    # -- what they return -----------------------------------------------------------------------

    def _bound(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        arguments = dict(self._operator.arguments)
        if "context" in inspect.signature(function).parameters:
            arguments["context"] = self._context
        if not arguments:
            return function
        return lambda tup: function(tup, **arguments)

    def _checked_batch(self, part: Any, schema: Schema, first: int) -> pa.RecordBatch:
        if not isinstance(part, pa.RecordBatch):
            raise WorkerFault(
                "operator",
                f"{_who(self._operator)}: returned {type(part).__name__}; a function of a batch returns "
                "pyarrow.RecordBatch or pyarrow.Table",
            )
        missing = [name for name in schema.names if name not in part.schema.names]
        if missing:
            raise WorkerFault(
                "operator",
                f"{_who(self._operator)}: the batch it returned has no column {', '.join(missing)}; "
                f"emits says: {schema}",
            )
        try:
            columns = [part.column(field.name).cast(arrow_type(field.type)) for field in schema.fields]
        except pa.ArrowInvalid as error:
            raise WorkerFault("operator", f"{_who(self._operator)}: {error}; emits says: {schema}") from error
        # The code may have dropped or reordered rows: all keep the sequence of the batch's first.
        columns.append(pa.array(np.full(part.num_rows, first, dtype=np.int64)))
        return pa.RecordBatch.from_arrays(columns, names=[*schema.names, SEQUENCE])

    def _build(self, output: list[tuple[str, int, Any]]) -> Iterator[pa.RecordBatch]:
        emits = self._operator.emits
        for number, (port, schema) in enumerate(emits):
            chosen = [(sequence, values) for name, sequence, values in output if name == port]
            if not chosen:
                continue
            rows = [self._values(values, schema.names) for _, values in chosen]
            columns = [
                self._column(field.name, field.type, [row[index] for row in rows], rows)
                for index, field in enumerate(schema.fields)
            ]
            sequences = pa.array([sequence for sequence, _ in chosen], pa.int64())
            if len(emits) == 1:
                yield pa.RecordBatch.from_arrays([*columns, sequences], names=[*schema.names, SEQUENCE])
            else:
                yield _tagged(emits, number, columns, sequences)

    def _values(self, emitted: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
        try:
            return as_values(emitted, names)
        except ValueError as error:
            raise WorkerFault(
                "operator", f"{_who(self._operator)}: emitted {emitted!r}, which does not fit: {error}"
            ) from error

    def _column(self, name: str, type_name: str, values: list[Any], rows: list[tuple[Any, ...]]) -> pa.Array:
        kind = arrow_type(type_name)
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for value, row in zip(values, rows, strict=True):
                try:
                    pa.array([value], kind)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                    raise WorkerFault(
                        "operator",
                        f"{_who(self._operator)}: emitted {row!r}, but column '{name}' is {type_name} "
                        f"and {value!r} is {type(value).__name__}: {error}",
                    ) from error
            raise

    def _hung(self, error: Hung) -> str:
        place = _own_line(self._stage, error)
        return (
            f"{_who(self._operator)} did not finish a tuple within {self._operator.timeout:g} seconds{place}\n"
            f"  tuple: {self._current!r}\n"
            "  make it faster, or raise the operator's `timeout`"
        )


def takes_batches(function: Callable[..., Any]) -> bool:
    """Whether the function asks for whole Arrow batches: its first parameter is annotated so."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    annotation = parameters[0].annotation if parameters else None
    return annotation is pa.RecordBatch or str(annotation).split(".")[-1] in ("RecordBatch", "RecordBatch'")


def _tagged(
    emits: tuple[tuple[str, Schema], ...], number: int, columns: list[pa.Array], sequences: pa.Array
) -> pa.RecordBatch:
    """One batch with a struct column for every port, all null but that of port `number`."""
    rows = len(sequences)
    arrays, names = [pa.array(np.full(rows, number, dtype=np.int32))], [PORT]
    for index, (port, schema) in enumerate(emits):
        fields = [pa.field(field.name, arrow_type(field.type)) for field in schema.fields]
        if index == number:
            arrays.append(pa.StructArray.from_arrays(columns, fields=fields))
        else:
            arrays.append(pa.nulls(rows, pa.struct(fields)))
        names.append(port)
    return pa.RecordBatch.from_arrays([*arrays, sequences], names=[*names, SEQUENCE])


def _raised(stage: CustomStage, error: BaseException, tup: Any, method: str = "") -> str:
    """What a user needs to find their mistake: the operator, their own line, the error, the tuple."""
    place = _own_line(stage, error)
    if isinstance(error, SystemExit):
        what = f"called sys.exit({error.code!r})"
    else:
        what = f"raised {type(error).__name__}: {error}"
    tuple_line = "" if tup is None else f"\n  tuple: {tup!r}"
    return f"{_who(stage.operator)}{' in ' + method if method else ''} {what}{place}{tuple_line}"


def _own_line(stage: CustomStage, error: BaseException) -> str:
    """The last line of the user's own code that the error passed through, rather than a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    own = [frame for frame in others if Path(frame.filename).is_relative_to(stage.folder)] or others
    return f" at {own[-1].filename}:{own[-1].lineno}\n  {own[-1].line}" if own else ""


def _who(operator: Custom) -> str:
    where = f" ({operator.where})" if operator.where.line else ""
    return f"operator '{operator.name}'{where}: {operator.code}"
