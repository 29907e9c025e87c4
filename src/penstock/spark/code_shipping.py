"""Ship the user's modules to executors on other machines."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.topology.model import Topology, own_function


def ship_code(spark: SparkSession, topology: Topology) -> None:
    """Send the Python files beside the topology, when it has custom code and executors are elsewhere.

    On this machine the workers read the folder itself, so tracebacks name the user's own files.
    """
    kinds = {source.kind for source in topology.sources} | {sink.kind for sink in topology.sinks}
    has_operators = any(own_function(operator) for operator in topology.operators)
    elsewhere = not str(spark.sparkContext.master).startswith("local")
    if elsewhere and (has_operators or kinds & {"spout", "custom"}):
        spark.sparkContext.addPyFile(str(_archive(topology.folder.absolute())))


def _archive(folder: Path) -> Path:
    target = Path(tempfile.mkdtemp(prefix="penstock-")) / "code.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder)
            if not any(part.startswith(".") for part in inside.parts):
                archive.write(path, inside)
    return target
