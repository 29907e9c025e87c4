"""The table of an enrichment as Spark reads it, anew in every micro-batch: as it was agreed for that epoch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.spark.epoch_source import offset_epoch
from penstock.spark.present_epoch import present_offset
from penstock.spark.table_versions import rows_of_version, version_file

TABLE_FORMAT = "penstock-table"


class TableDataSource(DataSource):
    """`spark.read.format("penstock-table")` with the options `state` and `operator`."""

    @classmethod
    def name(cls) -> str:
        return TABLE_FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(Path(self.options["state"]), self.options["operator"])


class TableReader(DataSourceReader):
    """Reads the version that the offset of the micro-batch at hand names."""

    def __init__(self, state: Path, operator: str) -> None:
        self._state = state
        self._operator = operator

    def read(self, partition: InputPartition) -> Iterator[Any]:
        version = offset_epoch(present_offset(self._state))[1].tables.get(self._operator)
        if version is None:  # the micro-batch from the start to the start, which has no tuples
            return
        yield from rows_of_version(version_file(self._state, self._operator, version))
