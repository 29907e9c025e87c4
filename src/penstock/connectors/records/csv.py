"""CSV lines: fields typed by the schema, quotes optional, a record never longer than its line."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.records.blanks import strip_blanks
from penstock.connectors.records.lines import LineFormat, Lines, Unfit
from penstock.topology.schema import Schema

_BAD_VALUE = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", re.DOTALL)
_BAD_WIDTH = re.compile(r"Expected (\d+) columns, got (\d+)")
_QUOTED_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_ZONED = r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"
_MOST_SHOWN = 100


class CsvFormat(LineFormat):
    """CSV lines whose fields are `columns`, in that order; those the schema does not name are passed over.

    An empty field is null; in a string column, it is the empty string. A timestamp without a zone
    is UTC. A quoted field ends on its own line.
    """

    def __init__(self, schema: Schema, columns: Sequence[str], delimiter: str, strip: bool) -> None:
        self.schema = arrow_schema(schema)
        self._declared = schema
        self._columns = list(columns)
        self._delimiter = delimiter.encode()
        self._strip = strip
        self._well_quoted = _well_quoted(self._delimiter)
        self._parsing = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=False)
        # Arrow's reader takes zoned or zoneless timestamps in a column, never both: they are cast afterwards.
        types = {field.name: pa.string() if _is_zoned(field.type) else field.type for field in self.schema}
        self._conversion = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=self.schema.names,
            null_values=[""],
            strings_can_be_null=False,
            check_utf8=False,
        )

    def parse(self, lines: Lines) -> pa.RecordBatch:
        data = lines.data
        # Arrow begins a row at a carriage return and lets a quoted field run over several lines. With
        # neither of the first and no open quote at the end, as many rows as lines means one row a line.
        if lines.count > 1 and b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            raise Unfit("a carriage return within a line")
        if self._strip:
            data = strip_blanks(data, self._delimiter)
        if not self._last_line_is_well_quoted(data):
            raise Unfit("a quote is opened and not closed on the same line")
        table = self._read(data)
        if table.num_rows != lines.count:
            raise Unfit("a carriage return within the line")
        columns = [self._typed(table.column(field.name), field) for field in self.schema]
        batches = pa.table(columns, schema=self.schema).combine_chunks().to_batches()
        return batches[0]

    def _read(self, data: bytes) -> pa.Table:
        reading = arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._columns)
        try:
            return arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=reading,
                parse_options=self._parsing,
                convert_options=self._conversion,
            )
        except pa.ArrowInvalid as error:
            raise Unfit(self._explain(str(error))) from None

    def _typed(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if not _is_zoned(field.type):
            return column
        try:
            return timestamps(column)
        except pa.ArrowInvalid:
            value = column[0].as_py() if len(column) else ""
            raise Unfit(f"column '{field.name}': '{_shown(value)}' is not timestamp") from None

    def _last_line_is_well_quoted(self, data: bytes) -> bool:
        last = data[data.rfind(b"\n", 0, -1) + 1 : -1]
        return b'"' not in last or self._well_quoted.fullmatch(last) is not None

    def _explain(self, said: str) -> str:
        if width := _BAD_WIDTH.search(said):
            return f"{width[1]} fields expected, {width[2]} found"
        if not (bad := _BAD_VALUE.match(said)):
            return said
        name = self._columns[int(bad[1])]
        if value := _QUOTED_VALUE.search(bad[2]):
            return f"column '{name}': '{_shown(value[1])}' is not {self._declared.type_of(name)}"
        return f"column '{name}': {_shown(bad[2])}"


def header_names(line: bytes, delimiter: str) -> list[str]:
    """The column names in a header line; raises UnicodeDecodeError when it is not UTF-8."""
    text = line.decode("utf-8-sig").rstrip("\r\n")
    return [name.strip() for name in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])]


def timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO timestamps as instants, those without a zone in UTC; empty is null; raises ArrowInvalid."""
    utc = pa.timestamp("us", tz="UTC")
    given = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    zoned = pc.match_substring_regex(given, _ZONED)
    nothing = pa.scalar(None, pa.string())
    with_zone = pc.cast(pc.if_else(zoned, given, nothing), utc)
    without_zone = pc.cast(pc.cast(pc.if_else(zoned, nothing, given), pa.timestamp("us")), utc)
    return pc.coalesce(with_zone, without_zone)


def _is_zoned(arrow: pa.DataType) -> bool:
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


def _well_quoted(delimiter: bytes) -> re.Pattern[bytes]:
    """A line in which every field that begins with a quote also ends it."""
    separator = re.escape(delimiter)
    rest = rb"[^" + separator + rb"]*+"
    field = rb'(?:"[^"]*+(?:""[^"]*+)*+"' + rest + rb'|(?!")' + rest + rb")"
    # Not `*+`: in Python 3.11.2, which Debian has, a group that fails in its middle leaves what it passed as matched.
    return re.compile(field + rb"(?:" + separator + field + rb")*", re.DOTALL)


def _shown(value: str) -> str:
    return value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "…"
