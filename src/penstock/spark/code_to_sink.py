"""Custom code and the sink behind it in one stage: its tuples do not go back to Spark and out again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.spark.arrow_lines import encoded
from penstock.spark.arrow_stage import Stage
from penstock.spark.staging import StagingStage


@dataclass(frozen=True)
class CodeToSink:
    """Runs in every task: the code, and then the staging of what it gave."""

    code: Stage
    staging: StagingStage
    columns: tuple[str, ...]
    """What the sink gets of what the code gives."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoding = self.staging.sinks[0].encoding
        given = (batch.select(list(self.columns)) for batch in self.code(batches) if batch.num_rows)
        return self.staging.told(self.staging.stage_for_one(encoded(rows, encoding) for rows in given))
