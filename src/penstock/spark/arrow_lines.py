"""Rows of an Arrow batch as lines of text, as `line_encoding` has Spark make them: for rows that Python has already."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Encoding
from penstock.topology.schema import Schema

LINE = "line"

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
"""What is written the same way by everybody."""
_FOR_COLUMNS = _NUMBERS | {"string", "float", "double", "date", "timestamp", "timestamp_ntz", "binary"}
_ENCODED: dict[Encoding, frozenset[str]] = {
    "columns": _FOR_COLUMNS,
    "json": _NUMBERS | {"string"},
    "csv": _NUMBERS,
    "text": _NUMBERS | {"string"},
}
_ESCAPED = r'["\\\x00-\x1f]'


def can_encode(schema: Schema, encoding: Encoding) -> bool:
    """Whether rows of these columns come out here exactly as Spark would write them."""
    return all(field.type in _ENCODED[encoding] for field in schema.fields)


def encoded(rows: pa.RecordBatch, encoding: Encoding) -> pa.RecordBatch:
    """The rows as a sink takes them: lines, each with its end, or for `columns` themselves."""
    if encoding == "columns":
        return rows
    end = pa.scalar("\n")
    if encoding == "text":
        lines = pc.binary_join_element_wise(_text(rows.column(0)), end, "", null_handling="emit_null")
    elif encoding == "csv":
        # In a line of one field two quotes are null: an empty one would be no row at all.
        null = '""' if rows.num_columns == 1 else ""
        values = [piece for column in rows.columns for piece in (pa.scalar(","), _text(column))]
        lines = _joined([*values[1:], end], null)
    else:
        lines = _joined([*_json_pieces(rows), pa.scalar("}\n")], "null")
    return pa.RecordBatch.from_arrays([lines], names=[LINE])


def _json_pieces(rows: pa.RecordBatch) -> Iterator[pa.Array | pa.Scalar]:
    for number, (name, column) in enumerate(zip(rows.schema.names, rows.columns, strict=True)):
        yield pa.scalar(f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:")
        yield _quoted(column) if pa.types.is_string(column.type) else _text(column)


def _quoted(column: pa.Array) -> pa.Array:
    """Texts as JSON writes them; those that need no escapes, nearly all, as they are."""
    if pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        texts = (None if text is None else json.dumps(text, ensure_ascii=False) for text in column.to_pylist())
        return pa.array(texts, pa.string())
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, column, quote, "", null_handling="emit_null")


def _joined(pieces: list[pa.Array | pa.Scalar], null: str) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement=null)


def _text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())
