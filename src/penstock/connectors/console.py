"""The `console` sink: a few rows of every epoch on standard output."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.connectors.base import EVERY_GUARANTEE, Place, SinkConnector, Staged
from penstock.connectors.memory import discard_staged, require_flag, rows_of, stage_table, staged_table
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.catalogue import Kind, Option
from penstock.topology.model import Delivery

FORMATS = ("table", "json")


@dataclass(frozen=True)
class EpochRows:
    """What there is to show of one epoch: its first rows, and how many it has in all."""

    sink: str
    epoch: int
    rows: pa.Table
    total: int

    @property
    def hidden(self) -> int:
        return self.total - int(self.rows.num_rows)


_last_shown: dict[tuple[str, str], int] = {}


@dataclass(frozen=True)
class ConsoleSink(SinkConnector):
    """Show the first rows of every epoch, once in this process.

    A terminal cannot be asked what it has shown: after a restart, an epoch that was shown but not
    recorded as done is shown again. Holds at most `limit` rows of each task, however many there are.

    It goes with every guarantee, because it gives none: it shows, and keeps nothing that could be wrong later.
    """

    describe: ClassVar[Kind] = Kind(
        "console", "sink", "Show tuples on standard output.",
        Option("console", "boolean", "Nothing, or true.", default=True),
        (Option("limit", "integer", "How many rows of an epoch are shown.", default=20, minimum=1),
         Option("format", "choice", "How rows are shown; default: table on a terminal, json in a pipe.",
                choices=FORMATS)))

    keeps: ClassVar[frozenset[Delivery]] = EVERY_GUARANTEE

    topology: str
    name: str
    limit: int = 20
    format: str | None = None
    writer: Callable[[EpochRows], None] | None = field(default=None, compare=False, repr=False)
    """Takes the rows instead of standard output; stays on the driver."""

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> ConsoleSink:
        require_flag("console", place.name, options)
        limit, form = options.get("limit", 20), options.get("format")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise TopologyError(f"sink '{place.name}': limit is {limit!r}; use a whole number from 1 up")
        if form not in (None, *FORMATS):
            raise TopologyError(f"sink '{place.name}': format is {form!r}; use {' or '.join(FORMATS)}")
        return cls(place.topology, place.name, limit, form)

    def writing_to(self, writer: Callable[[EpochRows], None]) -> ConsoleSink:
        """The same sink, with its rows given to `writer`."""
        return replace(self, writer=writer)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "writer": None}

    def open(self, fresh: bool) -> None:
        if fresh:
            _last_shown.pop((self.topology, self.name), None)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        kept: list[pa.RecordBatch] = []
        total, room = 0, self.limit
        for batch in batches:
            total += batch.num_rows
            if room and batch.num_rows:
                # A slice would keep the whole batch alive; take copies the few rows.
                taken = min(room, batch.num_rows)
                kept.append(batch.take(pa.array(range(taken), pa.int64())))
                room -= taken
        return stage_table(pa.Table.from_batches(kept), total) if kept else Staged(0)

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        key = (self.topology, self.name)
        if epoch > _last_shown.get(key, -1):
            shown = self._first_rows(staged)
            if shown is not None:
                self._show(EpochRows(self.name, epoch, shown, sum(part.rows for part in staged)))
            _last_shown[key] = epoch
        discard_staged(staged)

    def abort(self, staged: list[Staged]) -> None:
        discard_staged(staged)

    def _first_rows(self, staged: list[Staged]) -> pa.Table | None:
        tables: list[pa.Table] = []
        room = self.limit
        for part in staged:
            if part.rows and room:
                tables.append(staged_table(part).slice(0, room))
                room -= tables[-1].num_rows
        return pa.concat_tables(tables) if tables else None

    def _show(self, epoch: EpochRows) -> None:
        if self.writer is not None:
            self.writer(epoch)
            return
        try:
            write_to_stdout(epoch, self.format)
        except OSError as error:
            raise ConnectorError(f"sink '{self.name}': standard output cannot be written: "
                                 f"{error.strerror}") from error


def write_to_stdout(epoch: EpochRows, form: str | None = None) -> None:
    """Print an epoch's rows; `form` as in the sink's `format`, chosen by what stdout is when not given."""
    console = Console(file=sys.stdout)
    if (form or ("table" if console.is_terminal else "json")) == "table":
        console.print(as_rich_table(epoch))
        return
    for row in rows_of(epoch.rows):
        sys.stdout.write(as_json_line(row))
    sys.stdout.flush()
    if epoch.hidden:
        # Not on standard output: every line there is a row.
        print(f"{epoch.sink}, epoch {epoch.epoch}: {epoch.hidden} more rows", file=sys.stderr)


def as_rich_table(epoch: EpochRows) -> Table:
    more = f"… {epoch.hidden} more rows" if epoch.hidden else None
    table = Table(title=f"{epoch.sink}, epoch {epoch.epoch}", caption=more)
    for name, kind in zip(epoch.rows.schema.names, epoch.rows.schema.types, strict=True):
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        table.add_column(Text(name), justify="right" if numeric else "left")
    for row in rows_of(epoch.rows):
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    return table


def as_json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(plain(row), ensure_ascii=False) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(plain(value), ensure_ascii=False)
    return "null" if value is None else str(plain(value))


def plain(value: Any) -> Any:
    """`value` in what JSON can say: dates and decimals as text, bytes as base64."""
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
