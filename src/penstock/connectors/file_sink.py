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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.agreed_file import append_agreed
from penstock.connectors.base import EVERY_GUARANTEE, Encoding, Place, SinkConnector, Staged
from penstock.connectors.staged_files import (
    append_parts,
    has_links,
    join_parquet,
    link_first_wins,
    staged_parts_found,
    write_all,
    write_lines,
    write_parquet,
)
from penstock.connectors.staged_parts import clear_leftovers, discard_parts, leave_staging, new_part
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.model import Delivery

FORMATS = ("json", "csv", "parquet")
FORMAT_OF_EXTENSION = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
EPOCH_EXTENSION = {"json": ".jsonl", "csv": ".csv", "parquet": ".parquet"}

STAGING = ".penstock-staging"
NO_EPOCH = -1

_EPOCH_FILE = re.compile(r"epoch-\d{8,}\.(jsonl|csv|parquet)")
_ENDS_KEPT = 20


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
        (Option("format", "choice", "How rows are written; default: by extension, otherwise json. In CSV an "
                "empty field is null, and two quotes are the empty string. Parquet is always a folder.",
                choices=FORMATS),
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
    siblings: bool = False
    """Whether replicas commit the same epochs at the same time; see `shared`."""
    run: str = ""
    """Whose rows are staged; see `Place`."""

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
                   encoding=encodings[form], run=place.run)

    def with_columns(self, names: Sequence[str]) -> FileSink:
        """The same sink, knowing the names of the columns that it will be given."""
        return replace(self, columns=tuple(names))

    def shared(self) -> FileSink:
        """Without locks: nobody waits for a sibling that is frozen."""
        return replace(self, siblings=True)

    def open(self, fresh: bool) -> None:
        """Claim the target: clear what an earlier run of this sink left if `fresh`, otherwise continue it."""
        with in_plain_words(self.path, self.shown):
            if self.folder:
                self._open_folder(fresh)
            else:
                self._open_file(fresh)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        part = new_part(self._staging, self.run)
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

    def forget_staged(self, run: str) -> None:
        if self._staging.is_dir():
            clear_leftovers(self._staging.iterdir(), run, fresh=False)

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

    @property
    def settled(self) -> Path:
        """What became of single rows later; see `runtime.buried`."""
        return self.path.with_name(f".{self.path.name}.settled")

    def _own_record(self) -> Record | None:
        """The record, if it says that this very sink wrote what is there."""
        found = [read_record(path) for path in (self._record_path, *self._ends.glob("*"))]
        record = max((each for each in found if each is not None), key=lambda each: each.epoch, default=None)
        return record if record and (record.topology, record.sink) == (self.topology, self.name) else None

    def _record_to_continue(self) -> Record:
        """Without the record nobody knows what is committed, and a commit could destroy it."""
        record = self._own_record()
        if record is None:
            raise ConnectorError(f"{self._record_path}, which says what is in {self.shown}, is gone or "
                                 "another topology's: put it back, or start the topology afresh")
        return record

    def _write_record(self, epoch: int, length: int = 0, end: Path | None = None) -> None:
        draft = new_part(self._staging, self.run)
        draft.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as out:
            json.dump(asdict(Record(self.topology, self.name, epoch, length)), out)
            out.flush()
            os.fsync(out.fileno())
        if end is not None:
            with suppress(FileExistsError):
                os.link(draft, end)
        draft.replace(self._record_path)

    @property
    def _ends(self) -> Path:
        """One record for each of the last epochs, made once: replicas that replaced a single one could turn it back."""
        return self._staging / "ends"

    @property
    def _agreed(self) -> Path:
        """What each epoch's bytes are, while it is written; see `agreed_file`."""
        return self._staging / "agreed"

    def _write_end(self, epoch: int, length: int = 0) -> None:
        """Write down that an epoch is done, as every sibling does that comes so far."""
        self._ends.mkdir(parents=True, exist_ok=True)
        self._write_record(epoch, length, self._ends / f"{epoch:012d}")
        for old in sorted(self._ends.iterdir())[:-_ENDS_KEPT]:
            old.unlink(missing_ok=True)

    def _prepare_staging(self, fresh: bool) -> None:
        self._staging.mkdir(parents=True, exist_ok=True)
        clear_leftovers((*self._staging.iterdir(), *(self._staging.glob("*/*") if fresh else ())), self.run, fresh)
        if self.siblings and not has_links(new_part(self._staging, self.run)):
            raise ConnectorError(f"{self.shown} is on a disk without hard links, and by these replicas settle whose "
                                 "epoch it is: choose another path, or run with `replicas: 1`")
        done = self.last_epoch()
        for agreed in self._agreed.glob("*"):
            # Whoever did the epoch was killed before this was removed.
            if agreed.name.isdigit() and int(agreed.name) <= done:
                agreed.unlink(missing_ok=True)

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
                self.settled.unlink(missing_ok=True)
            elif not self.siblings:
                # The beginning of an epoch that was not finished.
                out.truncate(record.length)

    def _refuse_lost_data(self, size: int, record: Record) -> None:
        if size < record.length:
            raise ConnectorError(f"{self.shown} has {size} bytes, but {record.length} were written up to "
                                 f"epoch {record.epoch}: put the file back, or start the topology afresh")

    def _commit_among_siblings(self, epoch: int, parts: list[Path]) -> None:
        record = self._record_to_continue()
        if epoch <= record.epoch:
            return
        whole = new_part(self._staging, self.run)
        try:
            with whole.open("wb", buffering=0) as out:
                write_all(out, b"" if record.length else self._csv_header())
                append_parts(out, parts, epoch)
            length = append_agreed(self.path, self._agreed / f"{epoch:012d}", whole, record.length,
                                   lambda: self._record_to_continue().epoch >= epoch)
        finally:
            whole.unlink(missing_ok=True)
        if length is not None:
            self._write_end(epoch, length)
            (self._agreed / f"{epoch:012d}").unlink(missing_ok=True)

    def _commit_to_file(self, epoch: int, parts: list[Path]) -> None:
        if self.siblings:
            self._commit_among_siblings(epoch, parts)
            return
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
            self.settled.unlink(missing_ok=True)
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
        with nullcontext() if self.siblings else locked(self.path):
            if epoch <= self._record_to_continue().epoch:
                return
            final = self.path / f"epoch-{epoch:08d}{EPOCH_EXTENSION[self.format]}"
            if self.siblings:
                self._publish_among_siblings(parts, final, epoch)
                return
            if parts:
                self._publish(parts, final, epoch)
            self._write_record(epoch)

    def _publish_among_siblings(self, parts: list[Path], final: Path, epoch: int) -> None:
        """Whoever reads the folder may have removed the file already when one wakes up that was frozen on its way here.

        So a file gets its name only by way of one that is gone when the epoch is done: who comes late finds either the
        epoch done, or nothing to give the name to.
        """
        agreed = self._agreed / f"{epoch:012d}"
        if parts:
            agreed.parent.mkdir(parents=True, exist_ok=True)
            self._publish(parts, agreed, epoch)
        if self._record_to_continue().epoch < epoch:
            with suppress(FileExistsError, FileNotFoundError):
                if parts:
                    os.link(agreed, final)
            self._write_end(epoch)
        agreed.unlink(missing_ok=True)

    def _publish(self, parts: list[Path], final: Path, epoch: int) -> None:
        if len(parts) == 1 and not self._csv_header():
            with staged_parts_found(epoch):
                link_first_wins(parts[0], final)
            return
        whole = new_part(self._staging, self.run)
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
