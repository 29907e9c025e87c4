"""Tuples from files: CSV, JSON lines, plain text or Parquet; one file, a glob, or a directory that grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, ClassVar

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Chunk, Cut, Offset, Place, Slice, SourceConnector
from penstock.connectors.records.csv import CsvFormat, header_names
from penstock.connectors.records.files import LineFile, Mark, line_blocks, list_files, shrunk
from penstock.connectors.records.json import json_format
from penstock.connectors.records.lines import LineFormat, LineReader, TextFormat
from penstock.connectors.records.parquet import ParquetFile
from penstock.connectors.records.slices import Span, deal_out
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.schema import Field, Schema

FORMATS = ("csv", "json", "text", "parquet")

_BY_EXTENSION = {
    ".csv": "csv", ".dat": "csv", ".data": "csv",
    ".jsonl": "json", ".json": "json", ".ndjson": "json",
    ".parquet": "parquet",
}  # fmt: skip

_TEXT = Schema((Field("value", "string"),))
_BLOCK = 4 << 20


@dataclass(frozen=True)
class FileSource(SourceConnector):
    """Reads files that only grow, sorted by name; files and lines that come later are read later.

    Every physical line counts as a tuple in `Cut.tuples` and `Slice.first`, because lines can be counted
    without being looked at. Blank lines (except in text) and comments give neither a row nor a
    malformed record, so of an epoch's tuples there may be fewer than its cut says, never more.
    """

    describe: ClassVar[Kind] = Kind(
        "file",
        "source",
        "Read tuples from a file, the files a glob matches, or a directory.",
        Option("file", "path", "A path, a glob such as `logs/*.jsonl`, or a directory.", REQUIRED),
        (
            Option("format", "choice", "How records are written; by default told from the extension.",
                   None, FORMATS),
            Option("header", "boolean", "Whether the first line of each CSV file names its columns.", False),
            Option("delimiter", "string", "What separates the fields of a CSV line.", ","),
            Option("strip", "boolean", "Whether blanks around a CSV field are not part of its value.", True),
            Option("comment", "string", "Lines that begin with this are skipped."),
            Option("follow", "boolean", "Wait for appended lines and new files instead of ending.", False),
        ),
    )  # fmt: skip

    place: Place
    pattern: str
    format: str | None
    """None: by the extension of each file."""
    declared: Schema | None
    header: bool = False
    delimiter: str = ","
    strip: bool = True
    comment: str = ""
    follow: bool = False

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> FileSource:
        pattern = str(options["file"])
        delimiter = {"\\t": "\t", "tab": "\t"}.get(options["delimiter"], options["delimiter"])
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise TopologyError(f"source '{place.name}': delimiter '{delimiter}' is not one character; write ','")
        chosen = options["format"] or (format_of(PurePath(pattern)) if PurePath(pattern).suffix else None)
        source = cls(
            place, pattern, options["format"], schema, bool(options["header"]), delimiter,
            bool(options["strip"]), options["comment"] or "", bool(options["follow"]),
        )  # fmt: skip
        if chosen is not None:
            source._check_schema(chosen)
        return source

    def schema(self) -> Schema:
        files = self._files()
        first = next(iter(files.values()), None)
        chosen = self._format(first or PurePath(self.pattern))
        self._check_schema(chosen)
        if chosen != "parquet":
            return self.declared or _TEXT
        if first is not None and self.declared is not None:
            ParquetFile(self.place.name, first).check(self.declared)
        if self.declared is not None:
            return self.declared
        if first is None:
            raise ConnectorError(f"{self.place.name}: no Parquet file yet to take the schema from; write it")
        return ParquetFile(self.place.name, first).schema()

    def only(self, columns: Sequence[str]) -> FileSource:
        whole = self.schema()
        formats = {self._format(path) for path in self._files().values()}
        if not formats or not formats <= {"json", "parquet"}:  # CSV fields are found by counting all of them
            return self
        return replace(self, declared=Schema(tuple(field for field in whole.fields if field.name in columns)))

    def start(self) -> Offset:
        return {}

    def cut(self, start: Offset, limit: int) -> Cut:
        files = self._files()
        for key in start.keys() - files.keys():
            raise ConnectorError(f"{self.place.name}: {key} disappeared after it was read; restore it, or start afresh")
        end, tuples, waiting = dict(start), 0, 0
        for key, path in files.items():
            file = self._tracked(path)
            begin = self._begin(file, start.get(key))
            if begin is None:
                continue
            size = file.size()
            if size < begin.at:
                raise ConnectorError(shrunk(self.place.name, path, begin.at, size))
            reached = begin
            if tuples < limit and size > begin.at:
                self._check_fits(file)
                reached = file.advance(begin, limit - tuples, whole_lines=self.follow)
            if reached != begin:
                end[key] = {"at": reached.at, "line": reached.line}
            tuples += reached.line - begin.line
            waiting += max(size - reached.at, 0)
        return Cut(end, tuples, ended=not waiting and not self.follow, backlog=_records_in(waiting, end))

    def slices(self, start: Offset, end: Offset, parallelism: int) -> list[Slice]:
        slices: list[Slice] = []
        first = 0
        for group in deal_out(self._spans(start, end), parallelism):
            parts = [{"path": s.key, "begin": s.begin.at, "end": s.end, "line": s.begin.line} for s in group]
            slices.append(Slice(first, {"parts": parts}))
            first += sum(span.records for span in group)
        return slices

    def read(self, part: Slice) -> Iterator[Chunk]:
        for piece in part.detail["parts"]:
            file = self._tracked(self._path(piece["path"]))
            if isinstance(file, LineFile):
                yield from self._read_lines(file, piece)
            elif isinstance(file, ParquetFile):
                yield from file.read(piece["begin"], piece["end"], self.declared or self.schema())

    def _read_lines(self, file: LineFile, piece: Mapping[str, Any]) -> Iterator[Chunk]:
        reader = LineReader(self._line_format(file), self.comment.encode())
        line = piece["line"] + 1
        for block in line_blocks(self.place.name, file.path, piece["begin"], piece["end"], _BLOCK):
            chunk = reader.read(block, piece["path"], line)
            line += block.count(b"\n")
            if chunk.rows.num_rows or chunk.malformed:
                yield chunk

    def _spans(self, start: Offset, end: Offset) -> list[Span]:
        spans = []
        for key, mark in sorted(end.items(), key=lambda item: self._path(item[0])):
            file = self._tracked(self._path(key))
            begin = self._begin(file, start.get(key))
            if begin is not None and mark["at"] > begin.at:
                spans.append(Span(key, file, begin, mark["at"], mark["line"] - begin.line))
        return spans

    def _files(self) -> dict[str, Path]:
        return list_files(self.place, self.pattern, self.follow)

    def _path(self, key: str) -> Path:
        return self.place.folder.absolute() / key

    def _format(self, path: PurePath) -> str:
        return self.format or format_of(path)

    def _tracked(self, path: Path) -> LineFile | ParquetFile:
        chosen = self._format(path)
        if chosen == "parquet":
            return ParquetFile(self.place.name, path)
        return LineFile(self.place.name, path, header=self.header and chosen == "csv")

    def _begin(self, file: LineFile | ParquetFile, reached: Mapping[str, int] | None) -> Mark | None:
        if reached is None:
            return file.beginning(whole_lines=self.follow)
        return Mark(reached["at"], reached["line"])

    def _line_format(self, file: LineFile) -> LineFormat:
        chosen = self._format(file.path)
        if chosen == "text" or self.declared is None:
            return TextFormat(arrow_schema(self.declared or _TEXT))
        if chosen == "json":
            return json_format(self.declared)
        columns = self._header(file, self.declared) if file.header else self.declared.names
        return CsvFormat(self.declared, columns, self.delimiter, self.strip)

    def _header(self, file: LineFile, declared: Schema) -> list[str]:
        try:
            names = header_names(file.header_line(), self.delimiter)
        except UnicodeDecodeError as error:
            raise ConnectorError(f"{self.place.name}: the header of {file.path} is not UTF-8") from error
        missing = [name for name in declared.names if name not in names]
        if missing:
            raise ConnectorError(
                f"{self.place.name}: the header of {file.path} has no column '{missing[0]}'; it has {', '.join(names)}"
            )
        return names

    def _check_fits(self, file: LineFile | ParquetFile) -> None:
        """Raises before the epoch is agreed on what would otherwise only be found when reading it."""
        self._check_schema(self._format(file.path))
        if self.declared is not None and isinstance(file, ParquetFile):
            file.check(self.declared)
        if self.declared is not None and isinstance(file, LineFile) and file.header:
            self._header(file, self.declared)

    def _check_schema(self, chosen: str) -> None:
        """Raises TopologyError when files of a format cannot have the declared schema."""
        name, declared = self.place.name, self.declared
        if declared is None:
            if chosen in ("csv", "json"):
                raise TopologyError(
                    f"source '{name}': {chosen} files need a schema; write for example schema: \"id int, user string\""
                )
        elif chosen == "text" and [field.type for field in declared.fields] != ["string"]:
            raise TopologyError(
                f"source '{name}': a text file has one string column, not '{declared}'; "
                "leave the schema out, or write format: csv or format: json"
            )
        elif chosen == "csv" and (nested := [field for field in declared.fields if "<" in field.type]):
            raise TopologyError(
                f"source '{name}': a CSV field cannot be {nested[0].type} (column '{nested[0].name}'); "
                "declare it string, or use JSON"
            )


def format_of(path: PurePath) -> str:
    """The format that a file's extension stands for."""
    return _BY_EXTENSION.get(path.suffix.lower(), "text")


def _records_in(waiting: int, marks: Offset) -> int:
    """Roughly how many records so many bytes are, judging by what was read so far."""
    bytes_read = sum(mark["at"] for mark in marks.values())
    lines_read = sum(mark["line"] for mark in marks.values())
    return -(-waiting * lines_read // bytes_read) if bytes_read else waiting
