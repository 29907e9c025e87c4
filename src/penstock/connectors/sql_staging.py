"""Rows on their way to a database: Arrow files with only such types as a table column can have.

Whatever costs time for each value is done here, on the executors: nested values become JSON text.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.arrow_types import arrow_type, penstock_type
from penstock.connectors.staged_files import staged_parts_found
from penstock.errors import ConnectorError

_CHUNK_ROWS = 16 * 1024


def stage_part(part: Path, batches: Iterator[pa.RecordBatch], key: tuple[str, ...]) -> int:
    """Write the batches to a new file, and return how many rows; without any, there is no file.

    Raises ConnectorError for a type no column can have, and for a row without its key.
    """
    rows = 0
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("wb") as out:
            for batch in batches:
                if not batch.num_rows:
                    continue
                flat = flattened(batch)
                _require_key(flat, key)
                writer = writer or pa.ipc.new_stream(out, flat.schema)
                writer.write_batch(flat)
                rows += flat.num_rows
            if writer is not None:
                writer.close()
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if not rows:
        part.unlink()
    return rows


def staged_schema(part: Path, epoch: int) -> pa.Schema:
    """The columns of a staged file."""
    with staged_parts_found(epoch), part.open("rb") as file:
        return pa.ipc.open_stream(file).schema


def staged_batches(parts: list[Path], epoch: int) -> Iterator[pa.RecordBatch]:
    """The rows of all parts, in order, in pieces of a size that keeps memory flat."""
    for part in parts:
        with staged_parts_found(epoch), part.open("rb") as file:
            for batch in pa.ipc.open_stream(file):
                for start in range(0, batch.num_rows, _CHUNK_ROWS):
                    yield batch.slice(start, _CHUNK_ROWS)


def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with one type for each kind of value, and nested values as JSON text."""
    arrays, fields = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        flat = _flat_array(field.name, array)
        arrays.append(flat)
        fields.append(pa.field(field.name, flat.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _flat_array(name: str, array: pa.Array) -> pa.Array:
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    try:
        wanted = arrow_type(penstock_type(array.type))
    except ConnectorError as error:
        raise ConnectorError(f"column '{name}' is of type {array.type}, which no table column can hold: convert "
                             "it before the sink, for example to string") from error
    if pa.types.is_nested(wanted):
        return json_texts(array)
    # Only nanoseconds are cut off: no database here has them.
    return array if array.type == wanted else array.cast(wanted, safe=not pa.types.is_timestamp(wanted))


def json_texts(array: pa.Array) -> pa.Array:
    """Nested values as JSON. As in JSON files: what JSON lacks is text, binary is base64."""
    values = array.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if value is None else _json(value) for value in values], pa.string())


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_json)
    except (ValueError, TypeError):  # NaN or infinity somewhere, or a map with keys that are no text
        return json.dumps(_without_oddities(value), ensure_ascii=False, separators=(",", ":"), default=_as_json)


def _without_oddities(value: Any) -> Any:
    match value:
        case dict():
            return {_key_text(key): _without_oddities(item) for key, item in value.items()}
        case list():
            return [_without_oddities(item) for item in value]
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


def _key_text(key: Any) -> str:
    if isinstance(key, str):
        return key
    plain = _as_json(key) if isinstance(key, datetime.date | decimal.Decimal | bytes) else json.dumps(key)
    return str(plain)


def _as_json(value: Any) -> str:
    match value:
        case datetime.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            raise ConnectorError(f"a {type(value).__name__} inside a nested value has no form in JSON")


def _require_key(batch: pa.RecordBatch, key: tuple[str, ...]) -> None:
    for name in key:
        if name not in batch.schema.names:
            raise ConnectorError(f"the key column '{name}' is not among the columns that reach the sink: "
                                 f"{', '.join(batch.schema.names)}")
        if batch.column(name).null_count:
            raise ConnectorError(f"a row has no value in the key column '{name}', so upsert cannot tell which row "
                                 f"it replaces: leave such rows out before the sink (filter: {name} is not null)")
