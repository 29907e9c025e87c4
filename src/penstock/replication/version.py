"""The version of a topology: all that decides what its epochs give, in a few letters."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.metadata import version

from penstock import __version__
from penstock.topology.model import Topology
from penstock.topology.yaml_writer import write_topology


def version_of(topology: Topology) -> str:
    """Equal for equal topologies with equal Python code beside them, and an equal Penstock and Spark.

    Where its replicas run does not matter.
    """
    plain = replace(topology, replicas=1, cells=Topology.cells, tests=(), commands=())
    found = hashlib.sha256(write_topology(plain).encode())
    found.update(f"{__version__}\0{version('pyspark')}\0".encode())
    folder = topology.folder.absolute()
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        if not any(part.startswith(".") or part == "__pycache__" for part in inside.parts):
            found.update(f"{inside}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
