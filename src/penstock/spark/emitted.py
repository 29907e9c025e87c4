"""From what custom code emitted to Arrow batches, and which of it does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.arrow_types import arrow_type
from penstock.spark.epoch_source import SEQUENCE
from penstock.spark.tuples import as_values
from penstock.topology.schema import Schema

PORT = "__port"

Emits = tuple[tuple[str, Schema], ...]

_DOES_NOT_FIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


Emitted = tuple[str, int, Any]
"""One tuple that code emitted: on which port, for which row of the batch it was given, and its values."""


class Misfit(Exception):
    """An emitted tuple does not fit the schema; the message says how."""


def batches_of(
    output: Sequence[Emitted], emits: Emits, sequences: Sequence[int], kept: pa.RecordBatch | None = None
) -> Iterator[pa.RecordBatch]:
    """The emitted tuples as batches, each with the sequence of its row; raises Misfit.

    With several ports a batch has a struct column for every port. With one, the columns of `kept` stand in front of
    what was emitted for their row.
    """
    for number, (port, schema) in enumerate(emits):
        chosen = output if len(emits) == 1 else [item for item in output if item[0] == port]
        if not chosen:
            continue
        columns = _columns([item[2] for item in chosen], schema)
        numbers = pa.array([sequences[item[1]] for item in chosen], pa.int64())
        if len(emits) == 1:
            own = [] if kept is None else kept.take(pa.array([item[1] for item in chosen], pa.int64())).columns
            names = [*(kept.schema.names if kept is not None else ()), *schema.names, SEQUENCE]
            yield pa.RecordBatch.from_arrays([*own, *columns, numbers], names=names)
        else:
            yield _tagged(emits, number, columns, numbers)


def batch_for_rows(
    returned: Sequence[Any], schema: Schema, sequences: pa.Array, kept: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    """One emitted tuple for each of the rows with these sequences; raises Misfit.

    Tuples, or the values of the only column.
    """
    if len(schema.fields) == 1 and tuple not in set(map(type, returned)):
        (field,) = schema.fields
        columns = [_column(field.name, field.type, returned, [])]
    else:
        columns = _columns(returned, schema)
    own, names = ([], []) if kept is None else (kept.columns, kept.schema.names)
    return pa.RecordBatch.from_arrays([*own, *columns, sequences], names=[*names, *schema.names, SEQUENCE])


def fitting_batches(
    output: Sequence[Emitted], emits: Emits, sequences: Sequence[int], note: Callable[[int, str], None] | None,
    kept: pa.RecordBatch | None = None,
) -> list[pa.RecordBatch]:
    """As `batches_of`, without the rows for which something was emitted that does not fit: `note` is told of these.

    Without `note`, raises Misfit.
    """
    try:
        return list(batches_of(output, emits, sequences, kept))
    except Misfit:
        if note is None:
            raise
    wrong = misfits(output, emits)
    for row, what in wrong.items():
        note(row, what)
    return list(batches_of([item for item in output if item[1] not in wrong], emits, sequences, kept))


def port_meant(port: str, emits: Emits) -> str:
    """The port that code emits on: the only one need not be named. Raises ValueError when there is no such port."""
    ports = [name for name, _ in emits]
    if port in ports:
        return port
    if port or len(ports) != 1:
        known = ", ".join(repr(name) for name in sorted(ports)) or "none"
        raise ValueError(f"no output port {port!r}; the ports are {known}")
    return ports[0]


def port_column(port: str) -> str:
    """The name of a port's struct column, where there are several ports: a column cannot be without a name."""
    return port or "default"


def misfits(output: Sequence[Emitted], emits: Emits) -> dict[int, str]:
    """By row, what is wrong with the first emitted tuple that does not fit. Looks at each one singly: slow."""
    schemas = dict(emits)
    found: dict[int, str] = {}
    for port, row, emitted in output:
        if row in found:
            continue
        schema = schemas[port]
        try:
            values = _values(emitted, schema.names)
            for field, value in zip(schema.fields, values, strict=True):
                _column(field.name, field.type, [value], [values])
        except Misfit as misfit:
            found[row] = str(misfit)
    return found


def checked_batch(part: Any, schema: Schema, first: int) -> pa.RecordBatch:
    """What a function of a batch returned, in the columns and types of `schema`; raises Misfit."""
    if not isinstance(part, pa.RecordBatch):
        raise Misfit(
            f"returned {type(part).__name__}; a function of a batch returns pyarrow.RecordBatch or pyarrow.Table"
        )
    missing = [name for name in schema.names if name not in part.schema.names]
    if missing:
        raise Misfit(f"the batch it returned has no column {', '.join(missing)}; emits says: {schema}")
    try:
        columns = [part.column(field.name).cast(arrow_type(field.type)) for field in schema.fields]
    except pa.ArrowInvalid as error:
        raise Misfit(f"{error}; emits says: {schema}") from error
    # The code may have dropped or reordered rows: all keep the sequence of the batch's first.
    columns.append(pa.array(np.full(part.num_rows, first, dtype=np.int64)))
    return pa.RecordBatch.from_arrays(columns, names=[*schema.names, SEQUENCE])


def _columns(emitted: Sequence[Any], schema: Schema) -> list[pa.Array]:
    """The columns of emitted tuples; raises Misfit."""
    rows: Sequence[Any] = emitted
    kinds = set(map(type, emitted))
    if not all(issubclass(kind, (tuple, list)) for kind in kinds) or set(map(len, emitted)) != {len(schema.fields)}:
        rows, kinds = [_values(each, schema.names) for each in emitted], {tuple}
    return [
        _column(field.name, field.type, values, rows)
        for field, values in zip(schema.fields, _by_column(rows, len(schema.fields), kinds), strict=True)
    ]


def _by_column(rows: Sequence[Any], width: int, kinds: set[type]) -> Iterable[Sequence[Any]]:
    """The values of each column of rows that have so many."""
    if kinds <= {tuple, list}:
        # `zip` would make an iterator for every row: 121 ns for one of two values, and not 34.
        return ([row[at] for row in rows] for at in range(width))
    # A class of one's own may mean something else by `row[0]`, or take long for it.
    return zip(*rows, strict=True)


def _values(emitted: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    try:
        return as_values(emitted, names)
    except ValueError as error:
        raise Misfit(f"emitted {emitted!r}, which does not fit: {error}") from error


def _column(name: str, type_name: str, values: Sequence[Any], rows: Sequence[Any]) -> pa.Array:
    """One column; raises Misfit with the row that does not fit. Without `rows` it is the only one."""
    kind = arrow_type(type_name)
    try:
        return pa.array(values, kind)
    except _DOES_NOT_FIT:
        for value, row in zip(values, rows or ((value,) for value in values), strict=True):
            try:
                pa.array([value], kind)
            except _DOES_NOT_FIT as error:
                raise Misfit(
                    f"emitted {tuple(row)!r}, but column '{name}' is {type_name} and {value!r} is "
                    f"{type(value).__name__}: {error}"
                ) from error
        raise


def _tagged(emits: Emits, number: int, columns: list[pa.Array], sequences: pa.Array) -> pa.RecordBatch:
    """One batch with a struct column for every port, all null but that of port `number`."""
    rows = len(sequences)
    arrays, names = [pa.array(np.full(rows, number, dtype=np.int32))], [PORT]
    for index, (port, schema) in enumerate(emits):
        fields = [pa.field(field.name, arrow_type(field.type)) for field in schema.fields]
        if index == number:
            arrays.append(pa.StructArray.from_arrays(columns, fields=fields))
        else:
            arrays.append(pa.nulls(rows, pa.struct(fields)))
        names.append(port_column(port))
    return pa.RecordBatch.from_arrays([*arrays, sequences], names=[*names, SEQUENCE])
