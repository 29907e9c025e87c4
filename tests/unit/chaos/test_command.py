"""`penstock chaos` as a user types it, with a stand-in for the runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import penstock.cli.chaos
from penstock.chaos.gaps import GapReport
from penstock.chaos.rehearsal import Settings
from penstock.chaos.report import Report
from penstock.chaos.subject import Subject
from penstock.chaos.trial import Outcome
from penstock.cli.chaos import chaos
from penstock.errors import TopologyError
from penstock.topology.model import Delivery

FAKE = str(Path(__file__).with_name("fake_run.py"))

app = typer.Typer()
app.command()(chaos)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, stand_in: tuple[str, ...] = ("30",)) -> Result:
    """The stand-in waits until each of its epochs was seen: it could be at its end before a blow falls."""
    seen = Path(arguments[0]).with_name("seen")
    monkeypatch.setattr(penstock.cli.chaos._Stage, "look", lambda _, scene: seen.write_text(str(scene.epoch)))
    monkeypatch.setattr(penstock.cli.chaos, "PENSTOCK", (sys.executable, FAKE, *stand_in, f"seen={seen}"))
    return CliRunner().invoke(app, list(arguments))


def test_a_kept_promise_ends_with_0(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, str(project), "--kills", "3", "--seed", "5", "--report", str(project / "report.json"))
    assert done.exit_code == 0, done.output
    assert "out: lost 0, duplicated 0, reordered 0 (of 30 rows)" in done.stdout
    assert "exactly-once kept under 3 kills" in done.stdout
    assert "kill -9 of" in done.stdout
    report = json.loads((project / "report.json").read_text())
    assert report["kept"] is True
    assert report["seed"] == 5


def test_a_gap_that_was_noticed_ends_with_1_where_that_is_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = GapReport(quiet=1.2, struck=2.3, struck_after=7, interval=1.0, slowest_recovery=20.0)

    def rehearsed(subject: Subject, settings: Settings, *_: object) -> Report:
        done = Outcome(True, 25, 0, 0, 90.0, 1, 2.3, 7)
        return Report(subject.topology.name, Delivery.EXACTLY_ONCE, settings.seed, (), 30, done,
                      replace(done, gaps=gaps), (), (), (), gap_goal=settings.gap_goal)  # fmt: skip

    monkeypatch.setattr("penstock.chaos.rehearsal.rehearse", rehearsed)
    told = run(monkeypatch, str(project), "--replicas", "2")
    failed = run(monkeypatch, str(project), "--replicas", "2", "--gap-goal")
    assert (told.exit_code, failed.exit_code) == (0, 1), told.output + failed.output
    for done in (told, failed):
        assert "2.30 s, after epoch 7; goal: at most 1.20 s otherwise and an interval of 1.00 s" in done.stdout
        assert "exactly-once kept, A GAP WAS NOTICED under" in done.stdout
    alone = run(monkeypatch, str(project), "--gap-goal")
    assert alone.exit_code == 2
    assert "--gap-goal is for replicas" in alone.stderr


def test_what_was_found_is_told_though_the_disk_is_full_under_the_report(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(monkeypatch, str(project), "--kills", "1", "--report", "/dev/full")
    assert done.exit_code == 1
    assert "out: lost 0, duplicated 0" in done.stdout
    assert "the report could not be written to /dev/full: No space left on device" in done.stderr


def test_a_broken_promise_ends_with_1_and_keeps_the_evidence(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    done = run(monkeypatch, str(project), "--kills", "1", "--keep", str(kept),
               stand_in=("30", "doubling"))  # fmt: skip
    assert done.exit_code == 1
    report = json.loads((kept / "chaos-report.json").read_text())
    doubled = report["verdicts"][0]["duplicated"]
    assert doubled > 0
    assert f"exactly-once was promised, and {doubled} row" in done.stdout
    assert (kept / "disturbed/out/rows.jsonl").exists()
    assert (kept / "disturbed-logs/logs/start-1.err").exists()


def test_what_happens_can_be_read_by_programs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, str(project), "--kills", "1", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["phase"] for event in events if event["event"] == "phase"] == ["undisturbed", "disturbed"]
    assert len([event for event in events if event["event"] == "strike"]) == 3
    assert events[-1]["event"] == "report"
    assert events[-1]["kept"] is True


def test_a_folder_with_something_in_it_is_not_used_for_keeping(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, str(project), "--keep", str(project))
    assert done.exit_code == 2
    assert "the folder is not empty" in done.stderr


def test_input_without_end_is_an_error_of_the_topology(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, str(project), "--set", "sources.visits.follow=true")
    assert isinstance(done.exception, TopologyError)
    assert "--set sources.visits.follow=false" in str(done.exception)


def test_a_topology_without_output_to_compare_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (project / "topology.yaml").read_text()
    (project / "topology.yaml").write_text(text.replace("out: {from: visits, memory: true}, ", ""))
    done = run(monkeypatch, str(project))
    assert isinstance(done.exception, TopologyError)
    assert "no sink keeps rows" in str(done.exception)


def test_rescales_are_checked_before_anything_starts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable = run(monkeypatch, str(project), "--rescale", "visits")
    assert unreadable.exit_code == 2
    assert "write OPERATOR=N,N…" in unreadable.stderr
    unknown = run(monkeypatch, str(project), "--rescale", "counts=5,3")
    assert isinstance(unknown.exception, TopologyError)
    assert "there is no operator 'counts'" in str(unknown.exception)


def test_a_stateful_operator_is_rescaled_on_the_way(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (project / "topology.yaml").read_text()
    counted = text.replace("sinks:", "operators: {counts: {from: visits, count: user}}\nsinks:")
    (project / "topology.yaml").write_text(counted.replace("from: visits, memory", "from: counts, memory"))
    report = project / "report.json"
    done = run(monkeypatch, str(project), "--kills", "1", "--rescale", "counts=5,3", "--report", str(report),
               stand_in=("200",))
    assert done.exit_code == 0, done.output
    strikes = json.loads(report.read_text())["disturbed"]["strikes"]
    assert [(strike["act"], strike["done"]) for strike in strikes if strike["act"].startswith("rescale")] == [
        ("rescale counts=5", True), ("rescale counts=3", True)]
