"""What a run says to programs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import display as displays
from penstock.cli.display import JsonDisplay, LiveDisplay, PlainDisplay, named_in
from penstock.epochs.record import EpochRecord
from penstock.errors import DeliveryError, OperatorError
from penstock.replication.lifecycle import Phase
from penstock.replication.views import ReplicaView
from penstock.runtime.progress import Progress, Snapshot
from penstock.runtime.tally import Line
from penstock.topology.model import Topology


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def snapshot(epoch: int, failed: dict[str, int]) -> Snapshot:
    progress = Progress()
    progress.epoch_committed(EpochRecord(epoch, 0, {}, {}), 10.0, {}, {})
    progress.tuples_failed(failed, 0)
    return progress.snapshot()


def test_every_line_says_when_and_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonDisplay(Topology("t"), lambda _: [], "2") as display:
        display.say("starting")
        display.look(snapshot(1, {}))
    phase, progress = said(capsys)
    assert (phase["event"], phase["phase"]) == ("phase", "starting")
    assert (progress["event"], progress["epoch"]) == ("progress", 1)
    for line in (phase, progress):
        assert (line["topology"], line["replica"]) == ("t", "2")
        assert line["time"].endswith("+00:00")


def test_ports_are_told_beside_the_operators_and_not_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [Line("custom", "split", 7, ports={"words": 5, "short": 2}), Line("count", "counts", 3)]
    with JsonDisplay(Topology("t"), lambda _: lines) as display:
        display.look(snapshot(1, {}))
    (progress,) = said(capsys)
    assert progress["tuples"] == {"split": 7, "counts": 3}
    assert progress["ports"] == {"split.words": 5, "split.short": 2}
    with PlainDisplay(Topology("t"), lambda _: lines) as plain:
        plain.end(snapshot(1, {}), "done")
    assert "epoch 1 lag 0 split=7 counts=3\n" in capsys.readouterr().err


def test_failures_are_told_by_operator_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonDisplay(Topology("t"), lambda _: []) as display:
        display.look(snapshot(1, {"own": 2}))
        display.end(snapshot(5, {"own": 5, "other": 1}), "done")
    failed = [(line["operator"], line["epoch"], line["tuples"]) for line in said(capsys) if line["event"] == "failed"]
    assert failed == [("own", 1, 2), ("own", 5, 3), ("other", 5, 1)]


def test_progress_is_in_its_file_as_soon_as_there_is_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(displays, "time", SimpleNamespace(monotonic=lambda: now[0]))
    file = tmp_path / "progress.json"
    with JsonDisplay(Topology("t"), lambda _: [], progress_file=file) as display:
        for epoch in (1, 2, 3, 4):
            display.look(snapshot(epoch, {}))
            now[0] += 0.4
            assert json.loads(file.read_text())["epoch"] == epoch
    # The log has a line a second.
    assert [line["epoch"] for line in said(capsys)] == [1, 4]


def test_the_reason_why_it_ends_is_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DeliveryError), JsonDisplay(Topology("t"), lambda _: []):
        raise DeliveryError("the disk is full")
    (line,) = said(capsys)
    assert (line["event"], line["error"], "replica" in line) == ("error", "the disk is full", False)
    assert "epoch" not in line


def test_an_error_in_an_epoch_is_told_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    failed = OperatorError("operator 'split' (t.yaml:9): words:split raised KeyError")
    failed.epoch = 7
    with pytest.raises(OperatorError), JsonDisplay(Topology("t"), lambda _: [], "2"):
        raise failed
    (line,) = said(capsys)
    assert (line["topology"], line["replica"], line["operator"], line["epoch"]) == ("t", "2", "split", 7)


PAIR = [
    ReplicaView("1", "spark://a:7077", Phase.SAFE, 1400, 0, 1390),
    ReplicaView("2", "spark://b:7077", Phase.RECOVERING, 1060, 340, 10),
]


def test_the_live_display_shows_replicas_side_by_side_with_who_commits_and_who_lags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    monkeypatch.setattr(displays, "err", terminal)
    with LiveDisplay(Topology("t", replicas=2), lambda _: []) as display:
        display.replicas(PAIR)
        display.look(snapshot(1400, {}))
        display._live.refresh()
    lines = [line.split() for line in shown(terminal)]
    assert ["replica", "cell", "epoch", "behind", "first"] in lines
    assert ["1", "spark://a:7077", "safe", "1,400", "0", "1,390"] in lines
    assert ["2", "spark://b:7077", "recovering", "1,060", "340", "10"] in lines


def test_one_that_is_parked_is_shown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    monkeypatch.setattr(displays, "err", terminal)
    with LiveDisplay(Topology("t", replicas=2), lambda _: []) as display:
        display.replicas([PAIR[0], ReplicaView("2", "any", Phase.PARKED, 0, 0, 0, "the disk is full")])
        display.look(snapshot(1400, {}))
        display._live.refresh()
    assert any("parked" in line and line.rstrip().endswith("the disk is full") for line in shown(terminal))


def shown(terminal: Console) -> list[str]:
    assert isinstance(terminal.file, io.StringIO)
    return terminal.file.getvalue().splitlines()


def test_in_a_pipe_the_safety_is_told_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay(Topology("t"), lambda _: []) as display:
        for behind in (340, 339):
            display.replicas([PAIR[0], replace(PAIR[1], behind=behind)])
        display.replicas([PAIR[0], replace(PAIR[1], phase=Phase.SAFE, behind=0)])
    assert capsys.readouterr().err.splitlines() == ["replicas: 1/2 safe, recovering", "replicas: 2/2 safe"]


ON_A_FULL_DISK = """
import sys
from penstock import Topology
from penstock.cli.display import JsonDisplay, PlainDisplay
for display in (JsonDisplay(Topology("t"), lambda _: []), PlainDisplay(Topology("t"), lambda _: [])):
    with display:
        for _ in range(3):
            display.say("going on")
sys.exit(7)
"""


def test_a_full_disk_under_the_log_does_not_end_a_run() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", ON_A_FULL_DISK], stdout=full, stderr=full, check=False)
    assert done.returncode == 7


@pytest.mark.parametrize(("error", "named"), [
    ("operator 'split' (t.yaml:9): words:split raised KeyError", {"operator": "split"}),
    ("t.yaml:4: source 'lines': no such file", {"source": "lines"}),
    ("sink 'out': the disk is full", {"sink": "out"}),
    ("the coordinator is away", {}),
    ("epoch 4 could not be delivered: operator 'x' is none of this", {}),
])
def test_an_error_is_told_with_whom_it_speaks_of(error: str, named: dict[str, str]) -> None:
    assert named_in(error) == named
