"""The `file` sink: one file that grows by whole epochs, or a folder with one file per epoch.

Rows wait in a hidden staging folder on the same filesystem. A small record, `.name.epochs` beside a
file or `.epochs` inside a folder, says whose output it is and which epoch came last; it is replaced
after the rows are on disk, so a crash between the two is healed by the next commit.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import struct
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.base import EVERY_GUARANTEE, Encoding, Place, SinkConnector, Staged
from penstock.connectors.staged_parts import discard_parts, leave_staging
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.model import Delivery

FORMATS = ("json", "csv", "parquet")
FORMAT_OF_EXTENSION = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
EPOCH_EXTENSION = {"json": ".jsonl", "csv": ".csv", "parquet": ".parquet"}

STAGING = ".penstock-staging"
NO_EPOCH = -1

_EPOCH_FILE = re.compile(r"epoch-\d{8,}\.(jsonl|csv|parquet)")
_BLOCK = 1 << 20
_ROW_GROUP_ROWS = 128 * 1024
_STALE_SECONDS = 3600.0
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True)
class Record:
    """Whose output this is, the last epoch in it, and how long the file was after that epoch."""

    topology: str
    sink: str
    epoch: int = NO_EPOCH
    length: int = 0


@dataclass(frozen=True)
class FileSink(SinkConnector):
    """Write rows to files, whole epochs at a time, each epoch once."""

    describe: ClassVar[Kind] = Kind(
        "file", "sink", "Write tuples to a file, or to a folder with one file per epoch.",
        Option("file", "path", "A file (out/reach.jsonl), or a folder when it ends with '/' or has no "
               "extension.", default=REQUIRED),
        (Option("format", "choice", "How rows are written; default: by extension, otherwise json. Parquet is "
                "always a folder.", choices=FORMATS),
         Option("header", "boolean", "Whether CSV begins with the column names.", default=True),
         Option("overwrite", "boolean", "Replace what is there even if something else wrote it; in a folder, "
                "its files of this format.", default=False)))

    keeps: ClassVar[frozenset[Delivery]] = EVERY_GUARANTEE

    topology: str
    name: str
    path: Path
    shown: str
    """The path as the user wrote it, for messages."""
    format: str
    folder: bool
    """A folder of epoch files, rather than one file that grows."""
    header: bool = True
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    """Names for the CSV header; see `with_columns`."""
    encoding: Encoding = "json"

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> FileSink:
        written = options.get("file")
        if not isinstance(written, str) or not written.strip():
            raise TopologyError(f"sink '{place.name}': file needs a path, for example out/{place.name}.jsonl")
        form = options.get("format") or format_by_extension(written)
        if form not in FORMATS:
            raise TopologyError(f"sink '{place.name}': format is {form!r}; use {', '.join(FORMATS)}")
        encodings: dict[str, Encoding] = {"json": "json", "csv": "csv", "parquet": "columns"}
        return cls(place.topology, place.name, place.resolve(written), written, form,
                   folder=form == "parquet" or names_a_folder(written),
                   header=bool(options.get("header", True)), overwrite=bool(options.get("overwrite", False)),
                   encoding=encodings[form])

    def with_columns(self, names: Sequence[str]) -> FileSink:
        """The same sink, knowing the names of the columns that it will be given."""
        return replace(self, columns=tuple(names))

    def open(self, fresh: bool) -> None:
        """Claim the target: clear what an earlier run of this sink left if `fresh`, otherwise continue it."""
        with in_plain_words(self.path, self.shown):
            if self.folder:
                self._open_folder(fresh)
            else:
                self._open_file(fresh)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        part = self._staging / uuid.uuid4().hex
        with in_plain_words(self.path, self.shown):
            part.parent.mkdir(parents=True, exist_ok=True)
            try:
                write = write_parquet if self.format == "parquet" else write_lines
                rows = write(part, batches)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            if not rows:
                part.unlink(missing_ok=True)
                return Staged(0)
        return Staged(rows, {"part": str(part)})

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        parts = [Path(part.detail["part"]) for part in staged if part.rows]
        with in_plain_words(self.path, self.shown):
            if self.folder:
                self._commit_to_folder(epoch, parts)
            else:
                self._commit_to_file(epoch, parts)
            self.abort(staged)

    def abort(self, staged: list[Staged]) -> None:
        discard_parts(staged)

    def close(self) -> None:
        """Remove the staging folder, unless a sibling still has rows in it."""
        leave_staging(self._staging)

    def redirected(self, folder: Path) -> FileSink:
        path = folder / self.name / self.path.name
        return replace(self, path=path, shown=str(path), overwrite=True)

    def last_epoch(self) -> int:
        record = self._own_record()
        return NO_EPOCH if record is None else record.epoch

    def read_back(self) -> Iterator[pa.RecordBatch]:
        """The lines of the text formats, without the header; the rows of Parquet."""
        whole = sorted(self.path.glob("epoch-*")) if self.folder else [self.path]
        for path in (path for path in whole if path.exists()):
            if self.format == "parquet":
                yield from pq.read_table(path).to_batches()
            else:
                lines = path.read_text(encoding="utf-8").split("\n")[:-1]
                rows = lines[1:] if self._csv_header() or (self.format == "csv" and self.header) else lines
                yield pa.RecordBatch.from_pydict({"line": pa.array(rows, pa.string())})

    @property
    def _staging(self) -> Path:
        """This sink's own staging folder. Inside a folder target: its parent may be another filesystem."""
        own = hashlib.sha256(repr((self.topology, self.name)).encode()).hexdigest()[:16]
        return (self.path if self.folder else self.path.parent) / STAGING / own

    @property
    def _record_path(self) -> Path:
        return self.path / ".epochs" if self.folder else self.path.with_name(f".{self.path.name}.epochs")

    def _own_record(self) -> Record | None:
        """The record, if it says that this very sink wrote what is there."""
        record = read_record(self._record_path)
        return record if record and (record.topology, record.sink) == (self.topology, self.name) else None

    def _record_to_continue(self) -> Record:
        """Without the record nobody knows what is committed, and a commit could destroy it."""
        record = self._own_record()
        if record is None:
            raise ConnectorError(f"{self._record_path}, which says what is in {self.shown}, is gone or "
                                 "another topology's: put it back, or start the topology afresh")
        return record

    def _write_record(self, epoch: int, length: int = 0) -> None:
        draft = self._staging / uuid.uuid4().hex
        draft.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as out:
            json.dump(asdict(Record(self.topology, self.name, epoch, length)), out)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self._record_path)

    def _prepare_staging(self, fresh: bool) -> None:
        self._staging.mkdir(parents=True, exist_ok=True)
        # A sibling replica may be at work unless the run is fresh; its parts live for seconds, not hours.
        stale = time.time() - _STALE_SECONDS
        for leftover in self._staging.iterdir():
            with suppress(FileNotFoundError):
                if fresh or leftover.stat().st_mtime < stale:
                    leftover.unlink()

    def _refuse_foreign_data(self) -> None:
        raise ConnectorError(f"{self.shown} exists and was not written by this topology: move it away, "
                             "choose another path, or set overwrite: true")

    # One file that grows.

    def _open_file(self, fresh: bool) -> None:
        if self.path.is_dir():
            raise ConnectorError(f"{self.shown} is a folder: choose another path, or end it with '/' to have "
                                 "one file per epoch inside it")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = self._own_record()
        size = self.path.stat().st_size if self.path.exists() else 0
        if size and record is None and not (fresh and self.overwrite):
            self._refuse_foreign_data()
        if not fresh and record is not None:
            self._refuse_lost_data(size, record)
        self._prepare_staging(fresh)
        with self.path.open("ab") as out:
            if fresh or record is None:
                self._write_record(NO_EPOCH)
                out.truncate(0)

    def _refuse_lost_data(self, size: int, record: Record) -> None:
        if size < record.length:
            raise ConnectorError(f"{self.shown} has {size} bytes, but {record.length} were written up to "
                                 f"epoch {record.epoch}: put the file back, or start the topology afresh")

    def _commit_to_file(self, epoch: int, parts: list[Path]) -> None:
        self.path.touch()
        with self.path.open("r+b", buffering=0) as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            record = self._record_to_continue()
            if epoch <= record.epoch:
                return
            self._refuse_lost_data(os.fstat(out.fileno()).st_size, record)
            try:
                out.truncate(record.length)
                out.seek(record.length)
                if record.length == 0:
                    write_all(out, self._csv_header())
                append_parts(out, parts, epoch)
                os.fsync(out.fileno())
                self._write_record(epoch, out.tell())
            except BaseException:
                out.truncate(record.length)
                raise

    # A folder with one file per epoch.

    def _open_folder(self, fresh: bool) -> None:
        if self.path.is_file():
            self._replace_file_by_folder(fresh)
        self.path.mkdir(parents=True, exist_ok=True)
        record = self._own_record()
        present = [entry for entry in self.path.iterdir() if not entry.name.startswith(".")]
        if present and record is None and not (fresh and self.overwrite):
            self._refuse_foreign_data()
        self._prepare_staging(fresh)
        if fresh or record is None:
            self._write_record(NO_EPOCH)
        if fresh:
            for entry in present:
                if _EPOCH_FILE.fullmatch(entry.name) or (record is None and self._has_own_format(entry)):
                    entry.unlink()

    def _replace_file_by_folder(self, fresh: bool) -> None:
        if not (fresh and self.overwrite):
            raise ConnectorError(f"{self.shown} is a file, but {self._why_a_folder()}: move it away, choose "
                                 "another path, or set overwrite: true")
        self.path.unlink()

    def _why_a_folder(self) -> str:
        return ("Parquet is written as a folder with one file per epoch" if self.format == "parquet"
                else "a path without an extension is a folder with one file per epoch")

    def _has_own_format(self, entry: Path) -> bool:
        return entry.is_file() and FORMAT_OF_EXTENSION.get(entry.suffix.lower()) == self.format

    def _commit_to_folder(self, epoch: int, parts: list[Path]) -> None:
        with locked(self.path):
            record = self._record_to_continue()
            if epoch <= record.epoch:
                return
            if parts:
                final = self.path / f"epoch-{epoch:08d}{EPOCH_EXTENSION[self.format]}"
                self._publish(parts, final, epoch)
            self._write_record(epoch)

    def _publish(self, parts: list[Path], final: Path, epoch: int) -> None:
        if len(parts) == 1 and not self._csv_header():
            with staged_parts_found(epoch):
                link_first_wins(parts[0], final)
            return
        whole = self._staging / uuid.uuid4().hex
        try:
            if self.format == "parquet":
                join_parquet(whole, parts, epoch)
            else:
                with whole.open("wb", buffering=0) as out:
                    write_all(out, self._csv_header())
                    append_parts(out, parts, epoch)
            link_first_wins(whole, final)
        finally:
            whole.unlink(missing_ok=True)

    def _csv_header(self) -> bytes:
        if self.format != "csv" or not self.header or not self.columns:
            return b""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(self.columns)
        return text.getvalue().encode()


def format_by_extension(path: str) -> str:
    return FORMAT_OF_EXTENSION.get(Path(path).suffix.lower(), "json")


def names_a_folder(path: str) -> bool:
    return path.endswith("/") or not Path(path).suffix


def read_record(path: Path) -> Record | None:
    """The record at `path`; none when there is none or it is not one of Penstock's."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def line_bytes(column: pa.Array) -> pa.Buffer | bytes:
    """The text of a string column, value after value, straight from Arrow's buffer; nulls are left out."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.large_string())
    if column.null_count:
        # What lies in the buffer under a null is undefined.
        column = column.drop_null()
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return b""
    code, width = ("q", 8) if pa.types.is_large_string(column.type) else ("i", 4)
    (start,) = struct.unpack_from(f"={code}", offsets, column.offset * width)
    (end,) = struct.unpack_from(f"={code}", offsets, (column.offset + len(column)) * width)
    return data.slice(start, end - start)


def write_lines(part: Path, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the `line` column of the batches; returns how many lines."""
    rows = 0
    with part.open("wb", buffering=_BLOCK) as out:
        for batch in batches:
            lines = batch.column("line")
            out.write(line_bytes(lines))
            rows += len(lines) - lines.null_count
    return rows


def write_parquet(part: Path, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the batches in row groups of a size that reads well; returns how many rows."""
    rows, pending = 0, 0
    waiting: list[pa.RecordBatch] = []
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            writer = writer or pq.ParquetWriter(part, batch.schema)
            waiting.append(batch)
            rows, pending = rows + batch.num_rows, pending + batch.num_rows
            if pending >= _ROW_GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, pending = [], 0
        if writer is not None and waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    finally:
        if writer is not None:
            writer.close()
    return rows


def join_parquet(whole: Path, parts: list[Path], epoch: int) -> None:
    """Copy the row groups of all parts, in order, to one file."""
    with staged_parts_found(epoch):
        schema = pq.read_schema(parts[0])
        with pq.ParquetWriter(whole, schema) as writer:
            for part in parts:
                with pq.ParquetFile(part) as source:
                    for group in range(source.num_row_groups):
                        writer.write_table(source.read_row_group(group))


def append_parts(out: io.FileIO, parts: list[Path], epoch: int) -> None:
    with staged_parts_found(epoch):
        for part in parts:
            with part.open("rb", buffering=0) as source:
                while block := source.read(_BLOCK):
                    write_all(out, block)


def write_all(out: io.FileIO, data: bytes) -> None:
    """Write all of `data`: a disk that fills up takes the first half without complaint."""
    view = memoryview(data)
    while view:
        view = view[out.write(view):]


def link_first_wins(whole: Path, final: Path) -> None:
    """Give a finished file its name once it is on disk, unless the name is taken: then that one stays."""
    with whole.open("rb") as written:
        os.fsync(written.fileno())
    try:
        os.link(whole, final)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not final.exists():
            whole.rename(final)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other replicas on this machine that commit to it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def staged_parts_found(epoch: int) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(f"rows staged for epoch {epoch} are gone: {error.filename or error}; every "
                             "machine that runs the topology must see the same folder, and nobody may clean "
                             "it meanwhile") from error


@contextmanager
def in_plain_words(path: Path, shown: str) -> Iterator[None]:
    """Turn what the system says about `path` into a ConnectorError a user can act on."""
    try:
        yield
    except OSError as error:
        raise ConnectorError(explain(error, path, shown)) from error


def explain(error: OSError, path: Path, shown: str) -> str:
    """What went wrong with the target at `path`, which the user wrote as `shown`, and what to do."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return (f"no space left to write {shown} ({error.strerror}): free some space or choose another "
                    "disk; the epochs written so far are whole")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return (f"{shown} cannot be written ({error.strerror}): change its permissions or choose "
                    "another path")
        case errno.ENOTDIR | errno.EEXIST:
            blocking = next((above for above in path.parents if above.is_file()), path)
            return f"{blocking} is a file, not a folder, so {shown} cannot be made: choose another path"
        case _:
            return f"{shown} cannot be written: {error.strerror or error}"
