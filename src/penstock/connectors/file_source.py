"""Tuples from files: CSV, JSON lines, plain text or Parquet; one file, a glob, or a directory that grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, ClassVar

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Chunk, Cut, Offset, Place, Slice, SourceConnector
from penstock.connectors.records.csv import CsvFormat, header_names
from penstock.connectors.records.files import Mark, TrackedFile, gone, list_files, reading, replaced, shrunk
from penstock.connectors.records.json import json_format
from penstock.connectors.records.line_file import LineFile, line_blocks
from penstock.connectors.records.lines import LineFormat, LineReader, TextFormat
from penstock.connectors.records.parquet import ParquetFile
from penstock.connectors.records.skipping import Skipping
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

    An offset has, for each file, the byte (in Parquet the row) and the line that were reached, how many of those
    lines were no records (`skipped`, where any were), and a fingerprint of what was `seen` up to there, by which
    a file that was replaced is noticed. Headers, comments and, except in text, blank lines are no records.
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
    _known: dict[str, tuple[int, int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By file, the device and number of the one that this process has found to be what was read."""

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
        files = self._files_after(start)
        end, tuples, waiting = dict(start), 0, 0
        for key, path in files.items():
            file = self._tracked(path)
            begin = self._begin(file, start.get(key))
            if begin is None:
                continue
            size = file.size()
            self._check_unchanged(key, file, start.get(key), size)
            reached = begin
            if tuples < limit and size > begin.at:
                self._check_fits(file)
                reached = file.advance(begin, limit - tuples, whole_lines=self.follow)
            if reached != begin:
                end[key] = _as_offset(reached, file.fingerprint(reached.at))
            tuples += reached.records - begin.records
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
        reader = LineReader(self._line_format(file), file.skipping)
        line = piece["line"] + 1
        for block in line_blocks(self.place.name, file.path, piece["begin"], piece["end"], _BLOCK):
            lines = reader.lines(block, line)
            chunk = reader.read(lines, piece["path"], line)
            line += lines.count
            if chunk.rows.num_rows or chunk.malformed:
                yield chunk

    def _spans(self, start: Offset, end: Offset) -> list[Span]:
        spans = []
        for key, mark in sorted(end.items(), key=lambda item: self._path(item[0])):
            file = self._tracked(self._path(key))
            begin = self._begin(file, start.get(key))
            if begin is not None and mark["at"] > begin.at:
                self._check_unchanged(key, file, mark, file.size())
                spans.append(Span(key, file, begin, mark["at"], _as_mark(mark).records - begin.records))
        return spans

    def _check_unchanged(self, key: str, file: TrackedFile, reached: Mapping[str, Any] | None, size: int) -> None:
        """Raises ConnectorError when what was read of a file is not in it any more.

        Its content is looked at once in each process, and again when another file has taken its place.
        """
        path = self._path(key)
        with reading(self.place.name, path):
            status = path.stat()
        known = self._known.get(key) == (status.st_dev, status.st_ino)
        if reached is not None:
            at, seen = reached["at"], reached.get("seen")
            if size < at:
                raise ConnectorError(shrunk(self.place.name, path, at, size))
            if seen is not None and not known and file.fingerprint(at) != seen:
                raise ConnectorError(replaced(self.place.name, path, at))
        self._known[key] = status.st_dev, status.st_ino

    def _files_after(self, start: Offset) -> dict[str, Path]:
        """The files there are now; raises ConnectorError when one that was read is not among them."""
        try:
            files = self._files()
        except ConnectorError:
            if all(self._path(key).exists() for key in start):
                raise
            files = {}
        for key in sorted(start.keys() - files.keys()):
            raise ConnectorError(gone(self.place.name, self._path(key)))
        return files

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
        skipping = Skipping(blank=chosen != "text", comment=self.comment.encode())
        return LineFile(self.place.name, path, self.header and chosen == "csv", skipping)

    def _begin(self, file: LineFile | ParquetFile, reached: Mapping[str, Any] | None) -> Mark | None:
        return file.beginning(whole_lines=self.follow) if reached is None else _as_mark(reached)

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


def _as_offset(mark: Mark, seen: str) -> dict[str, Any]:
    skipped = {"skipped": mark.skipped} if mark.skipped else {}
    return {"at": mark.at, "line": mark.line, **skipped, "seen": seen}


def _as_mark(reached: Mapping[str, Any]) -> Mark:
    return Mark(reached["at"], reached["line"], reached.get("skipped", 0))


def _records_in(waiting: int, marks: Offset) -> int:
    """Roughly how many records so many bytes are, judging by what was read so far."""
    bytes_read = sum(mark["at"] for mark in marks.values())
    records_read = sum(_as_mark(mark).records for mark in marks.values())
    return -(-waiting * records_read // bytes_read) if bytes_read else waiting
