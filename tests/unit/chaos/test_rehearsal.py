from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.chaos.rehearsal import Settings, read_rows, rehearse
from penstock.chaos.report import Report
from penstock.chaos.subject import prepare
from penstock.connectors.memory import MemorySink
from penstock.connectors.registry import catalogue
from penstock.errors import DeliveryError
from penstock.topology.loading import load_topology
from penstock.topology.model import Delivery

from ...own_mounts import with_own_mounts
from .fake_ways import fake_ways


def rehearsed(
    project: Path, *arguments: str, kills: int = 4, deep: bool = False, delivery: Delivery = Delivery.EXACTLY_ONCE
) -> Report:
    topology, problems = load_topology(project / "topology.yaml", catalogue())
    assert topology is not None and not problems
    subject = prepare(replace(topology, delivery=delivery), {}, kills)
    ways = fake_ways(project.parent, "30", *arguments)
    settings = Settings(kills, seed=1, deep=deep, gap_goal=True)
    return rehearse(subject, settings, ways, project.parent / "scratch")


def test_a_topology_that_keeps_its_promise(project: Path) -> None:
    report = rehearsed(project)
    assert report.kept
    # Without replicas there is no gap that should not be noticed.
    assert (report.gap_goal, report.noticed, report.passed) == (True, None, True)
    (verdict,) = report.verdicts
    assert (verdict.sink, verdict.rows, verdict.lost, verdict.duplicated) == ("out", 30, 0, 0)
    assert report.left_out == ("seen",)
    assert report.disturbed.starts > report.reference.starts == 1
    assert "the input of 12 tuples makes only" not in " ".join(report.notes)


def test_a_sink_that_ignores_the_epoch_breaks_exactly_once(project: Path) -> None:
    report = rehearsed(project, "doubling", kills=1)
    assert not report.kept
    (verdict,) = report.verdicts
    assert verdict.duplicated > 0
    noun = "row was" if verdict.duplicated == 1 else "rows were"
    assert report.breaches == (f"sink 'out': exactly-once was promised, and {verdict.duplicated} {noun} doubled",)


def test_a_sink_that_ignores_the_epoch_keeps_at_least_once(project: Path) -> None:
    report = rehearsed(project, "doubling", kills=1, delivery=Delivery.AT_LEAST_ONCE)
    assert report.verdicts[0].duplicated > 0
    assert report.kept


def test_a_topology_that_fails_undisturbed_is_an_error(project: Path) -> None:
    with pytest.raises(DeliveryError, match=r"fails even undisturbed: .*this never works"):
        rehearsed(project, "failing")


@with_own_mounts
def test_a_deep_rehearsal_leaves_no_mount_and_keeps_what_was_written(project: Path) -> None:
    report = rehearsed(project, kills=1, deep=True)
    outcomes = {strike.disturbance.act.name: strike.outcome for strike in report.disturbed.strikes}
    assert outcomes["CORRUPT_OFFSETS"].startswith("refused, and put back: the offset log is damaged")
    assert outcomes["CORRUPT_STATE"].startswith("not done")
    scratch = project.parent / "scratch"
    assert not (scratch / "disturbed").is_mount()
    assert len((scratch / "disturbed/out/rows.jsonl").read_text().splitlines()) == 30


@dataclass(frozen=True)
class Lines(MemorySink):
    """A sink that hands back lines, as the file sink does."""

    lines: tuple[str, ...] = ()

    def read_back(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"line": list(self.lines)})


def test_a_column_of_json_lines_can_be_ignored() -> None:
    one, other = Lines("t", "s", ('{"id":1,"at":5}',)), Lines("t", "s", ('{"id":1,"at":6}',))
    assert read_rows(one) != read_rows(other)
    assert read_rows(one, {"at"}) == read_rows(other, {"at"})


def test_lines_that_are_no_json_are_compared_whole() -> None:
    assert read_rows(Lines("t", "s", ("1,5",)), {"at"}) != read_rows(Lines("t", "s", ("1,6",)), {"at"})
