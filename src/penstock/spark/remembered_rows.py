"""Rows in the state of a key, as a worker that moves whole Arrow batches remembers them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from penstock.spark.faults import WorkerFault

_HEAD = struct.Struct(">I")


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """The rows as bytes, with a mark by which their columns are known again."""
    head = _HEAD.pack(_fingerprint(rows.schema))
    return head + rows.serialize().to_pybytes() if rows.num_rows else head


def decode_rows(encoded: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows again; raises ValueError when they had other columns."""
    (fingerprint,) = _HEAD.unpack_from(encoded)
    if fingerprint != _fingerprint(schema):
        raise ValueError("the columns have changed")
    content = pa.py_buffer(encoded)[_HEAD.size :]
    return pa.ipc.read_record_batch(content, schema) if len(content) else pa.RecordBatch.from_pylist([], schema)


@contextmanager
def told_of_other_columns(operator: str) -> Iterator[None]:
    """Say what to do about rows with other columns; `operator` is who remembers them, with its line."""
    try:
        yield
    except ValueError as error:
        raise WorkerFault(
            "operator",
            f"{operator}: the tuples that it remembers had other columns than those it reads now; "
            "change the columns back, or start anew with --fresh",
        ) from error


def _fingerprint(schema: pa.Schema) -> int:
    return zlib.crc32(schema.remove_metadata().to_string().encode())
