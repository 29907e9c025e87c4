"""What users may import from `penstock`, pinned."""

import subprocess
import sys

import penstock


def test_the_public_names_are_these() -> None:
    assert penstock.__all__ == [
        "Bolt",
        "ConnectorError",
        "Context",
        "CoordinationError",
        "DeliveryError",
        "Fail",
        "MachineError",
        "MalformedRecord",
        "OperatorError",
        "PenstockError",
        "Spout",
        "Topology",
        "TopologyError",
        "__version__",
    ]


def test_importing_penstock_brings_neither_spark_nor_arrow() -> None:
    program = "import sys, penstock; print([name for name in ('pyspark', 'pyarrow') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
