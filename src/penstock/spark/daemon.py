"""The process that forks Spark's Python workers, with everything they need imported beforehand.

`spark.python.daemon.module` names it: Spark runs `python -m penstock.spark.daemon pyspark.worker`. A worker
forked here starts with these modules in memory, shared with its siblings, instead of half a second of imports.
"""

from __future__ import annotations

import gc

import pyarrow.compute
import pyspark.daemon
import pyspark.worker

import penstock.spark.custom
import penstock.spark.epoch_source
import penstock.spark.staging

PRELOADED = (
    pyarrow.compute,
    pyspark.worker,
    penstock.spark.custom,
    penstock.spark.epoch_source,
    penstock.spark.staging,
)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
