"""Tables that streams are enriched from: read whole, from a file or from a database, and known by a digest."""

from __future__ import annotations

import abc
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Place
from penstock.connectors.file_source import FileSource, format_of
from penstock.connectors.records.files import reading
from penstock.errors import ConnectorError
from penstock.topology.schema import Schema

_MOST_ROWS = 1 << 40


@dataclass(frozen=True)
class Snapshot:
    """A table as it was at one moment."""

    digest: str
    rows: pa.Table


class LookupTable(abc.ABC):
    """A table that may change at any time. Every method may raise ConnectorError."""

    @abc.abstractmethod
    def schema(self) -> Schema:
        """Its columns."""

    @abc.abstractmethod
    def mark(self, now: float) -> Any:
        """Something small that is another one when the table may have changed; `now` in seconds. Cheap."""

    @abc.abstractmethod
    def snapshot(self, scratch: Path) -> Snapshot:
        """The table as it is now; `scratch` is a folder of ours for passing things."""


@dataclass(frozen=True)
class FileTable(LookupTable):
    """A table in one file."""

    place: Place
    file: str
    declared: Schema | None
    format: str | None
    header: bool

    @property
    def path(self) -> Path:
        return self.place.resolve(self.file)

    def schema(self) -> Schema:
        return self._source(self.path).schema()

    def mark(self, now: float) -> Any:
        with reading(self.place.name, self.path):
            status = self.path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def snapshot(self, scratch: Path) -> Snapshot:
        with _copied(self.place.name, self.path, scratch) as copy:
            # What is read is what was digested, whatever becomes of the file meanwhile.
            with copy.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(str(self._reading).encode(), digest_size=16))
            source = self._source(copy)
            schema = source.schema()
            cut = source.cut(source.start(), _MOST_ROWS)
            chunks = [chunk for part in source.slices(source.start(), cut.end, 1) for chunk in source.read(part)]
        for bad in (bad for chunk in chunks for bad in chunk.malformed):
            line = bad.position.rpartition(":")[2]
            raise ConnectorError(f"{self.place.name}: {self.path}:{line}: {bad.error}")
        rows = pa.Table.from_batches([chunk.rows for chunk in chunks], arrow_schema(schema))
        return Snapshot(digest.hexdigest(), rows)

    @property
    def _reading(self) -> tuple[str, str, bool]:
        """What the content of a file means depends on: two tables of one file may read it in two ways."""
        return str(self.declared), self.format or format_of(self.path), self.header

    def _source(self, path: Path) -> FileSource:
        options = {"file": str(path), "format": self.format or format_of(self.path), "header": self.header,
                   "delimiter": ",", "strip": True, "comment": None, "follow": False}  # fmt: skip
        return FileSource.configure(self.place, options, self.declared)


@contextmanager
def _copied(name: str, path: Path, scratch: Path) -> Iterator[Path]:
    scratch.mkdir(parents=True, exist_ok=True)
    copy = scratch / f".incoming{path.suffix}"
    try:
        with reading(name, path):
            shutil.copyfile(path, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)
