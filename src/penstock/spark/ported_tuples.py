"""Rows that carry the tuples of several input ports: the number of the port, and a struct column for every port.

All structs of a row are null but that of its own port. `input_ports.lower_gather` makes such rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.tuples import rows_of

NUMBER = "__input_port"
PREFIX = "__in_"

Ports = Mapping[str, tuple[str, ...]]
"""The columns of each port."""


def parts_of(batch: pa.RecordBatch, ports: Ports) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The tuples of each port that has any, with their own columns and ours."""
    ours = [name for name in batch.schema.names if name != NUMBER and not name.startswith(PREFIX)]
    for number, (port, names) in enumerate(ports.items()):
        # A field that stands beside the structs too, such as a key, is there already.
        kept = [name for name in ours if name not in names]
        chosen = batch if len(ports) == 1 else batch.filter(pc.equal(batch.column(NUMBER), number))
        if chosen.num_rows:
            columns = [*chosen.column(PREFIX + port).flatten(), *(chosen.column(name) for name in kept)]
            yield port, pa.RecordBatch.from_arrays(columns, names=[*names, *kept])


def ported_tuples(batch: pa.RecordBatch, ports: Ports) -> tuple[list[Any], list[str]]:
    """The tuple of each row, in order, and the port that it came in by."""
    names = list(ports)
    came_by = [names[number] for number in batch.column(NUMBER).to_pylist()]
    waiting = {port: rows_of(part, ports[port]) for port, part in parts_of(batch, ports)}
    return [next(waiting[port]) for port in came_by], came_by
