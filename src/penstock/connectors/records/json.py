"""JSON lines: one object a line; fields the schema does not name are passed over, missing ones are null."""

from __future__ import annotations

import decimal
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from penstock.connectors.arrow_types import arrow_schema, arrow_type
from penstock.connectors.records.lines import LineFormat, Lines, Unfit
from penstock.connectors.records.values import RowFormat
from penstock.topology.schema import Schema

_OPEN, _CLOSE = b"{}"
_CHANGED = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+)")
_TWICE = re.compile(r"Column\(/(.*)\) was specified twice")
_UNPARSED = re.compile(r"Failed to convert JSON to ([^,]+(?:\[[^]]*\])?), couldn't parse: ?(.*)", re.DOTALL)
_SYNTAX = re.compile(r"JSON parse error: (.*?)\.? in row \d+$", re.DOTALL)
_MOST_SHOWN = 100


def json_format(schema: Schema) -> LineFormat:
    """The fastest way to read JSON lines of this schema."""
    by_arrow = all(_arrow_reads(field.type, nested=False) for field in arrow_schema(schema))
    return JsonFormat(schema) if by_arrow else JsonByRecord(schema)


class JsonFormat(LineFormat):
    """JSON read whole blocks at a time by Arrow."""

    def __init__(self, schema: Schema) -> None:
        self.schema = arrow_schema(schema)
        self._declared = schema
        self._spelling = {str(arrow_type(field.type)): field.type for field in schema.fields}
        self._dates = [field.name for field in self.schema if pa.types.is_date(field.type)]
        # Arrow's reader takes dates as numbers of days only: they are read as text and cast.
        read_as = [pa.field(f.name, pa.string() if f.name in self._dates else f.type) for f in self.schema]
        self._parsing = arrow_json.ParseOptions(
            explicit_schema=pa.schema(read_as), newlines_in_values=False, unexpected_field_behavior="ignore"
        )

    def parse(self, lines: Lines) -> pa.RecordBatch:
        if b"\0" in lines.data:
            raise Unfit("invalid JSON: a NUL byte in the line")  # Arrow would stop reading there.
        neat = (lines.first_bytes == _OPEN).all() and (lines.last_bytes == _CLOSE).all()
        data = lines.data if neat else _stripped(lines)
        # Arrow knows no lines: it would read an object spread over two, or two objects in one. Where every
        # line begins with { and ends with }, no object can be spread; then as many rows as lines
        # means one each. (Arrow also crashes on a lone null, which never gets past this.)
        table = self._read(data)
        if table.num_rows != lines.count:
            raise Unfit("more than one JSON value in the line")
        for name in self._dates:
            table = self._with_dates(table, name)
        return table.combine_chunks().to_batches()[0]

    def _read(self, data: bytes) -> pa.Table:
        reading = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        try:
            return arrow_json.read_json(pa.BufferReader(data), read_options=reading, parse_options=self._parsing)
        except pa.ArrowInvalid as error:
            raise Unfit(self._explain(str(error))) from None

    def _with_dates(self, table: pa.Table, name: str) -> pa.Table:
        column = table.column(name)
        try:
            dates = pc.cast(column, pa.date32())
        except pa.ArrowInvalid:
            raise Unfit(f"field '{name}': '{_shown(column[0].as_py() or '')}' is not date") from None
        return table.set_column(table.column_names.index(name), pa.field(name, pa.date32()), dates)

    def _explain(self, said: str) -> str:
        if changed := _CHANGED.search(said):
            name = changed[1].replace("/[]", "[]").replace("/", ".")
            declared = self._declared.type_of(name)
            return f"field '{name}' is a JSON {changed[3]}, not {declared or changed[2]}"
        if twice := _TWICE.search(said):
            return f"field '{twice[1].replace('/', '.')}' appears twice"
        if unparsed := _UNPARSED.search(said):
            return f"{_shown(unparsed[2])} is not {self._spelling.get(unparsed[1], unparsed[1])}"
        if syntax := _SYNTAX.search(said):
            return f"invalid JSON: {syntax[1]}"
        return said


class JsonByRecord(LineFormat):
    """JSON read record by record, for the types that Arrow's reader has no notion of: map, binary…"""

    def __init__(self, schema: Schema) -> None:
        self._rows = RowFormat(schema, ignore_unknown=True)
        self.schema = self._rows.schema

    def parse(self, lines: Lines) -> pa.RecordBatch:
        return self._rows.batch([_object(line) for line in lines.split()])


def _stripped(lines: Lines) -> bytes:
    """The lines without blanks around them; raises Unfit unless each looks like an object."""
    stripped = [line.strip() for line in lines.split()]
    for line in stripped:
        if not (line.startswith(b"{") and line.endswith(b"}")):
            raise Unfit(_why_no_object(line))
    return b"\n".join(stripped) + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.strip(), parse_float=decimal.Decimal)
    except json.JSONDecodeError as error:
        raise Unfit(f"invalid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unfit("JSON nested too deep") from None
    except ValueError as error:
        raise Unfit(f"invalid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unfit(f"not a JSON object but {_shown(line.strip().decode())}")
    return value


def _why_no_object(line: bytes) -> str:
    _object(line)
    return "not a JSON object"


def _arrow_reads(arrow: pa.DataType, nested: bool) -> bool:
    if pa.types.is_map(arrow) or pa.types.is_binary(arrow):
        return False
    if pa.types.is_date(arrow):
        return not nested
    if pa.types.is_list(arrow):
        return _arrow_reads(arrow.value_type, nested=True)
    if pa.types.is_struct(arrow):
        return all(_arrow_reads(field.type, nested=True) for field in arrow)
    return True


def _shown(value: str) -> str:
    return value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "…"
