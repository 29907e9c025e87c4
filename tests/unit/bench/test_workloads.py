from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.workloads import WORKLOADS, Workload, workload, write_tables
from penstock.connectors.registry import catalogue, misconfigured
from penstock.topology.model import EpochSettings
from penstock.validation import validate


@pytest.mark.parametrize("each", WORKLOADS, ids=lambda each: each.name)
def test_every_topology_is_valid_with_and_without_a_pace(each: Workload, tmp_path: Path) -> None:
    write_tables(tmp_path)
    for rate in (None, 10_000.0):
        topology = each.topology(tmp_path, 1000, rate)
        problems = [*validate(topology, catalogue()), *misconfigured(topology)]
        assert [str(problem) for problem in problems if problem.severity == "error"] == []
        (source,) = (source for source in topology.sources if source.name == each.source)
        assert (source.options["count"], source.options.get("rate")) == (1000, rate)


@pytest.mark.parametrize("each", WORKLOADS, ids=lambda each: each.name)
def test_a_workload_is_measured_as_users_run_it_who_tune_nothing(each: Workload, tmp_path: Path) -> None:
    assert each.topology(tmp_path, 1000).epoch == EpochSettings()


def test_every_topology_in_the_folder_is_a_workload() -> None:
    folder = Path(__file__).parents[3] / "src" / "penstock" / "bench" / "topologies"
    assert {file.stem for file in folder.glob("*.yaml")} == {each.name for each in WORKLOADS}
    assert all(workload(each.name) is each for each in WORKLOADS)
