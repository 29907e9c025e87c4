"""`checkpoint`, `backup`, `restore` and `rescale`, each a real process, on runs that go on or were killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK
from .readings import EPOCHS, ROWS_IN_EPOCH, SENSORS, TOPOLOGY, Output, Project


def counts_after(epoch: int) -> dict[str, int]:
    """What `counts` remembers: how many odd readings each sensor has given."""
    return dict(Counter(SENSORS[n % 3] for n in range(epoch * ROWS_IN_EPOCH) if n % 2))


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_checkpoint_taken_from_a_running_topology_is_restored_under_another_name(
    project: Project, undisturbed: Output
) -> None:
    with project.running() as run:
        run.until_epoch(4)
        taken = json.loads(said(project.run("--name", "early", "--json", command="checkpoint")))
        copied = json.loads(said(project.run(".", "kept", "--json", command="backup")))
        assert run.finish() == 0, run.errors
    assert project.output() == undisturbed
    assert 4 <= taken["epoch"] <= copied["epoch"]
    assert (taken["name"], taken["topology"], taken["operators"]) == ("early", "readings", ["counts"])
    early = project.state / "snapshots" / "early"
    restored = project.run(str(early), "--as", "copy", "--set", "sinks.odd.file=copy/odd.jsonl",
                           "--set", "sinks.counts.file=copy/counts.jsonl", command="restore")
    assert f"'copy' is at epoch {taken['epoch']}" in said(restored)
    assert f"sink 'counts' has no output here: it begins with epoch {taken['epoch'] + 1}" in restored.stderr
    assert "starting Spark" not in restored.stderr
    again = project.run("--set", "topology=copy", "--set", "sinks.odd.file=copy/odd.jsonl",
                        "--set", "sinks.counts.file=copy/counts.jsonl")
    assert again.returncode == 0, again.stderr
    assert f"going on after epoch {taken['epoch']}" in again.stderr
    whole = {path.stem: path.read_text().splitlines() for path in project.folder.glob("out/*.jsonl")}
    rest = {path.stem: path.read_text().splitlines() for path in project.folder.glob("copy/*.jsonl")}
    # What the first run wrote after that epoch, the second wrote too, and nothing else.
    assert {name: sorted(lines[len(lines) - len(rest[name]):]) for name, lines in whole.items()} == {
        name: sorted(lines) for name, lines in rest.items()}
    assert sum(len(lines) for lines in rest.values()) < sum(len(lines) for lines in whole.values())
    assert project.run("kept", command="restore").returncode == 0


def test_a_lost_state_folder_comes_back_from_a_backup_and_the_sinks_skip_what_they_have(
    stopped: Project, undisturbed: Output
) -> None:
    at = stopped.epoch
    shutil.rmtree(stopped.state)
    assert f"is at epoch {at}" in said(stopped.run("kept", command="restore"))
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {at}" in done.stderr
    assert stopped.output() == undisturbed


def test_a_half_copied_backup_is_refused_by_what_is_missing(stopped: Project) -> None:
    kept = stopped.folder / "kept"
    missing = next(path for path in (kept / "checkpoint/state").rglob("*.changelog"))
    missing.unlink()
    refused = stopped.run("kept", "--replace", command="restore")
    assert refused.returncode == 1
    assert f"{missing.relative_to(kept)} is missing" in refused.stderr
    (kept / "manifest").unlink()
    refused = stopped.run("kept", "--replace", command="restore")
    assert refused.returncode == 1
    assert "copied only in part" in refused.stderr


def test_a_backup_fits_a_topology_with_operators_added_and_removed(stopped: Project) -> None:
    at = stopped.epoch
    changed = TOPOLOGY.replace("  odd:    {from: readings, filter: \"n % 2 = 1\"}\n", "").replace(
        "  counts: {from: odd, count: sensor}\n",
        "  seen:   {from: readings, uniq: sensor}\n  counts: {from: readings, count: sensor}\n",
    ).replace("  odd:    {from: odd, file: out/odd.jsonl}\n", "  seen:   {from: seen, file: out/seen.jsonl}\n")
    stopped.file.write_text(changed)
    refused = stopped.run()
    assert refused.returncode == 2
    looked = stopped.run("kept", "--replace", "--dry-run", command="restore")
    assert "nothing was changed" in said(looked)
    assert "operator 'seen' is new: it begins empty" in looked.stderr
    assert f"is at epoch {at}" in said(stopped.run("kept", "--replace", command="restore"))
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    last = {row["sensor"]: row["count"] for row in map(json.loads, stopped.output()["counts"])}
    rows = EPOCHS * ROWS_IN_EPOCH
    # Up to the backup only odd readings were counted, afterwards all.
    later = Counter(SENSORS[n % 3] for n in range(at * ROWS_IN_EPOCH, rows))
    expected = {name: counts_after(at).get(name, 0) + later[name] for name in SENSORS}
    assert {name: max(row["count"] for row in map(json.loads, stopped.output()["counts"]) if row["sensor"] == name)
            for name in last} == expected
    assert len(stopped.output()["seen"]) == len(SENSORS)


def test_a_rescale_that_is_killed_leaves_the_old_state_or_the_new(stopped: Project, undisturbed: Output) -> None:
    for moment in ("prepared/checkpoint/offsets", "prepared/shape"):
        process = subprocess.Popen(
            [PENSTOCK, "rescale", ".", "counts=4"], cwd=stopped.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        reached = Path(stopped.state, moment)
        wait_until(lambda here=reached, running=process: here.exists() or running.poll() is not None, PATIENCE_SECONDS)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said(stopped.run(".", "--json", command="state"))
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    assert stopped.output() == undisturbed
    assert not (stopped.state / "prepared").exists()
