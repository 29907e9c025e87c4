"""What a run says to programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.display import JsonDisplay
from penstock.errors import DeliveryError
from penstock.runtime.progress import Progress, Snapshot
from penstock.topology.model import Topology


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def snapshot(epoch: int, failed: dict[str, int]) -> Snapshot:
    progress = Progress()
    progress.epoch_committed(epoch, 0, 10.0, {}, {})
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


def test_failures_are_told_by_operator_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonDisplay(Topology("t"), lambda _: []) as display:
        display.look(snapshot(1, {"own": 2}))
        display.end(snapshot(5, {"own": 5, "other": 1}), "done")
    failed = [(line["operator"], line["epoch"], line["tuples"]) for line in said(capsys) if line["event"] == "failed"]
    assert failed == [("own", 1, 2), ("own", 5, 3), ("other", 5, 1)]


def test_progress_is_in_its_file_as_soon_as_there_is_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "progress.json"
    with JsonDisplay(Topology("t"), lambda _: [], progress_file=file) as display:
        for epoch in (1, 2, 3):
            display.look(snapshot(epoch, {}))
            assert json.loads(file.read_text())["epoch"] == epoch
    # The log has a line a second.
    assert [line["epoch"] for line in said(capsys)] == [1]


def test_the_reason_why_it_ends_is_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DeliveryError), JsonDisplay(Topology("t"), lambda _: []):
        raise DeliveryError("the disk is full")
    (line,) = said(capsys)
    assert (line["event"], line["error"], "replica" in line) == ("error", "the disk is full", False)


ON_A_FULL_DISK = """
import sys
from penstock import Topology
from penstock.cli.display import JsonDisplay, PlainDisplay
for display in (JsonDisplay(Topology("t"), lambda _: []), PlainDisplay(lambda _: [])):
    with display:
        for _ in range(3):
            display.say("going on")
sys.exit(7)
"""


def test_a_full_disk_under_the_log_does_not_end_a_run() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", ON_A_FULL_DISK], stdout=full, stderr=full, check=False)
    assert done.returncode == 7
