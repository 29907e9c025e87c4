"""Files with staged rows: how they are written, put together, and given their names once."""

from __future__ import annotations

import errno
import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import ConnectorError

_BLOCK = 1 << 20
_ROW_GROUP_ROWS = 128 * 1024
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


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


def has_links(unused: Path) -> bool:
    """Whether a file can have two names on this disk; `unused` is the name of none there."""
    other = unused.with_name(f"{unused.name}-linked")
    unused.touch()
    try:
        os.link(unused, other)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    finally:
        for path in (unused, other):
            path.unlink(missing_ok=True)
    return True


@contextmanager
def staged_parts_found(epoch: int) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(f"rows staged for epoch {epoch} are gone: {error.filename or error}; every "
                             "machine that runs the topology must see the same folder, and nobody may clean "
                             "it meanwhile") from error
