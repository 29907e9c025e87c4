"""Tuples that were not acked, on their way from Spark's aggregate to the driver: they become failures like others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.base import Place, SinkConnector, Staged
from penstock.spark.failures import FailureLedger
from penstock.spark.worker_process import task_number
from penstock.topology.model import Custom, ErrorKind, Topology

NAME = "not acked"
"""Its name among the sinks; no user can write such a name."""
TREE = "root"
"""The column with the sequence of the source tuple."""


@dataclass(frozen=True)
class UnackedTuples(SinkConnector):
    """Takes the rows of the acker as a sink takes its own, behind the topology's sinks; nothing of it is committed."""

    state: str
    timeout: float
    dropping: frozenset[str]
    """The operators of whose tuples only the number is wanted."""

    @classmethod
    def of(cls, topology: Topology, state: Path) -> UnackedTuples:
        custom = (operator for operator in topology.operators if isinstance(operator, Custom))
        dropping = frozenset(operator.name for operator in custom if operator.on_error.kind is ErrorKind.DROP)
        return cls(str(state), topology.ack_timeout, dropping)

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> UnackedTuples:
        raise TypeError("a topology cannot name this sink")

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        ledgers: dict[str, FailureLedger] = {}
        number = 0
        for row in (row for batch in batches for row in batch.to_pylist()):
            operator = row["operator"]
            if operator not in ledgers:
                ledgers[operator] = FailureLedger(Path(self.state), operator, operator not in self.dropping)
            error = f"not acked within {self.timeout:g} s"
            ledgers[operator].note(row[TREE], json.loads(row["tuple"]), error, "")
            number += 1
        for ledger in ledgers.values():
            ledger.close(f"acker{task_number()}")
        return Staged(number)

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        raise TypeError("what is not acked is never committed")
