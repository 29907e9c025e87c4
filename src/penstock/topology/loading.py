"""Read a topology from whatever file holds it: YAML, Python, or a DADSTORM configuration."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import TopologyError
from penstock.topology.catalogue import Catalogue
from penstock.topology.dadstorm import read_dadstorm
from penstock.topology.dadstorm.commands import Replicas
from penstock.topology.dadstorm.reader import read_replicas
from penstock.topology.model import Location, Topology
from penstock.topology.model_overrides import override
from penstock.topology.problems import Problem
from penstock.topology.yaml_reader import read_topology

DEFAULT_NAMES = ("topology.yaml", "topology.yml", "topology.py")
INHERITED_SETS = "PENSTOCK_SETS"
"""In the environment, a JSON list of what to set before `--set`: everybody on a machine sees its command lines."""


def find_topology_file(folder: Path) -> Path | None:
    """The topology file that a folder holds, by its usual names."""
    return next((folder / name for name in DEFAULT_NAMES if (folder / name).is_file()), None)


def load_topology(
    path: Path, catalogue: Catalogue, overrides: Mapping[str, str] | None = None
) -> tuple[Topology | None, list[Problem]]:
    """The topology in the file and everything wrong with how it is written.

    A folder stands for the topology file in it. By the name's ending: `.py` is Python, `.config` and
    `.conf` are DADSTORM's, everything else is YAML.
    """
    if path.is_dir():
        found = find_topology_file(path)
        if found is None:
            return None, [Problem(Location(str(path)), f"no {' or '.join(DEFAULT_NAMES)} in this folder")]
        path = found
    if not path.is_file():
        return None, [Problem(Location(str(path)), "no such file")]
    if path.suffix == ".py":
        return _load_python(path, overrides or {})
    if _is_dadstorm(path):
        return read_dadstorm(path, overrides or {})
    return read_topology(path, catalogue, os.environ, overrides or {})


def addressed_replicas(path: Path, topology: Topology) -> Replicas:
    """What commands may name of the topology that was loaded from `path`."""
    if _is_dadstorm(path):
        return read_replicas(path)
    return Replicas((), {operator.name: operator.name for operator in topology.operators})


def _is_dadstorm(path: Path) -> bool:
    return path.suffix.lower() in (".config", ".conf")


def _load_python(path: Path, overrides: Mapping[str, str]) -> tuple[Topology | None, list[Problem]]:
    here = Location(str(path))
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        # Named like the module that workers will import it as: its functions are found there.
        names = runpy.run_path(str(path), run_name=path.stem)
    except TopologyError as error:
        found = [problem for problem in error.problems if isinstance(problem, Problem)]
        return None, found or [Problem(here, str(error))]
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = frames[-1].lineno or 0 if frames else 0
        return None, [Problem(Location(str(path), line), f"{type(error).__name__}: {error}")]
    finally:
        sys.path.pop(0)
    topology = names.get("topology")
    if not isinstance(topology, Topology):
        return None, [Problem(here, "no variable 'topology' that holds a Topology", "topology = Topology(…)…")]
    topology, problems = override(topology.with_folder(path.parent), overrides)
    return (None if problems else topology), problems
