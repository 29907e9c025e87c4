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
import penstock.spark.keyed_stage
import penstock.spark.staging
from penstock.spark.keyed_worker import install

PRELOADED = (
    pyarrow.compute,
    pyspark.worker,
    penstock.spark.custom,
    penstock.spark.epoch_source,
    penstock.spark.keyed_stage,
    penstock.spark.staging,
)

if __name__ == "__main__":
    install()
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
