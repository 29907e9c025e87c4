"""`penstock epochs`, as a user types it, on a log as a run leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import Result

from penstock.cli import screen
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.runtime.state_folder import Committed, StateFolder

from .typed import enter_project, penstock

GOOD = """\
topology: pages
sources:
  visits: {file: visits.csv, schema: "user string, page string"}
sinks:
  out: {from: visits, file: out/visits.jsonl}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, GOOD, visits="ann,/home\n")
    return tmp_path


def record(epoch: int, **more: object) -> EpochRecord:
    fields = {"backlog": 1000 - epoch, "last": False, **more}
    return EpochRecord(epoch, 1_700_000_000_000 + epoch, {"visits": {"row": epoch}}, {"visits": 1200 + epoch},
                       **fields)  # type: ignore[arg-type]


def leave(state: Path, records: list[EpochRecord], committed: int) -> str:
    """A state folder as a run leaves it; the address of its coordinator."""
    state.mkdir(parents=True)
    folder = StateFolder(state)
    coordinator = open_coordinator(folder.coordinator)
    log = EpochLog(coordinator)
    for each in records:
        log.propose(each)
    coordinator.close()
    folder.record(Committed(committed))
    return folder.coordinator


def shown(result: Result) -> list[int]:
    """The epochs of a table, from above."""
    cells = [line.strip(" │┃").split("│")[0].strip() for line in result.stdout.splitlines() if "│" in line]
    return [int(cell) for cell in cells if cell.isdigit()]


def test_epochs_are_shown_with_their_tuples_and_state(project: Path) -> None:
    leave(project / ".penstock/pages", [record(1), record(2)], committed=1)
    result = penstock("epochs")
    assert result.exit_code == 0
    assert "epochs of pages" in result.stdout
    assert shown(result) == [1, 2]
    first, second = (line for line in result.stdout.splitlines() if "visits" in line)
    assert "visits 1,201" in first
    assert "999" in first
    assert "committed" in first
    assert "2023-11-1" in first
    assert "in flight" in second


def test_the_last_epoch_and_what_was_shed_are_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen.out, "width", 120)
    leave(project / ".penstock/pages", [record(1, shed={"visits": 0.25}, seed=7), record(2, last=True)], committed=2)
    first, second = (line for line in penstock("epochs").stdout.splitlines() if "visits 1," in line)
    assert "committed, 25% of visits shed" in first
    assert "committed, the last" in second


def test_the_newest_are_shown_when_there_are_many(project: Path) -> None:
    leave(project / ".penstock/pages", [record(epoch) for epoch in range(1, 31)], committed=30)
    assert shown(penstock("epochs")) == list(range(11, 31))
    assert shown(penstock("epochs", "--last", "3")) == [28, 29, 30]
    assert penstock("epochs", "--last", "0").exit_code == 2


def test_as_json_each_epoch_is_one_object_a_line(project: Path) -> None:
    leave(project / ".penstock/pages", [record(1), record(2)], committed=1)
    result = penstock("epochs", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["epoch"], line["committed"]) for line in lines] == [(1, True), (2, False)]
    assert lines[0]["ends"] == {"visits": {"row": 1}}
    assert lines[0]["tuples"] == {"visits": 1201}


def test_another_state_folder_can_be_named(project: Path) -> None:
    leave(project / "elsewhere", [record(5)], committed=5)
    assert shown(penstock("epochs", "--state", "elsewhere")) == [5]


def test_another_coordinator_can_be_named_also_by_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = leave(project / "elsewhere", [record(8)], committed=8)
    assert shown(penstock("epochs", "--coordinator", address)) == [8]
    monkeypatch.setenv("PENSTOCK_COORDINATOR", address)
    assert shown(penstock("epochs")) == [8]


def test_a_topology_that_never_ran_is_said_to_have_no_epochs_and_gets_no_state(project: Path) -> None:
    result = penstock("epochs")
    assert result.exit_code == 1
    assert "topology 'pages' has cut no epoch yet: start it with `penstock run`" in result.stderr
    assert not (project / ".penstock").exists()


def test_a_topology_that_was_stopped_before_its_first_epoch_has_none_either(project: Path) -> None:
    leave(project / ".penstock/pages", [], committed=0)
    result = penstock("epochs")
    assert result.exit_code == 1
    assert "has cut no epoch yet" in result.stderr


def test_a_wrong_topology_is_refused_as_everywhere(project: Path) -> None:
    (project / "topology.yaml").write_text(GOOD.replace("from: visits", "from: visit"))
    result = penstock("epochs")
    assert result.exit_code == 2
    assert "did you mean 'visits'?" in result.stderr
