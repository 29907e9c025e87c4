"""One Spark session for the whole ring, and a folder to write a topology with its code and data in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.registry import catalogue
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.runtime.run import Outcome, Run, RunSettings, run_topology
from penstock.runtime.state_folder import StateFolder
from penstock.testing import shared_session
from penstock.topology.loading import load_topology
from penstock.topology.model import Topology
from penstock.validation import validate


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return shared_session()


@dataclass(frozen=True)
class Project:
    """A user's folder: the topology, the Python beside it, its input and its output."""

    folder: Path
    spark: SparkSession

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def topology(self, text: str) -> Topology:
        """The topology written in `text`, which must be without problems."""
        topology, problems = load_topology(self.write("topology.yaml", text), catalogue())
        assert topology is not None, problems
        errors = [str(item) for item in (*problems, *validate(topology, catalogue())) if item.severity == "error"]
        assert errors == []
        return topology

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def settings(self, **more: Any) -> RunSettings:
        return RunSettings(state=self.state, metrics=False, **more)

    def run(self, topology: Topology, **more: Any) -> Outcome:
        return run_topology(topology, self.settings(**more), self.spark)

    def started(self, topology: Topology) -> Run:
        run = Run(topology, self.settings())
        run.start(self.spark)
        return run

    def plan(self, topology: Topology) -> str:
        return Run(topology, self.settings()).explain(self.spark)

    def json_lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in (self.folder / name).read_text(encoding="utf-8").splitlines()]

    def epochs(self) -> list[EpochRecord]:
        """The agreed epochs of the last run, in order."""
        coordinator = open_coordinator(StateFolder(self.state).coordinator)
        log = EpochLog(coordinator)
        records = [log.get(number) for number in log.agreed()]
        coordinator.close()
        return [record for record in records if record is not None]


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    yield Project(tmp_path, spark)
