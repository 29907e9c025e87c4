"""`checkpoint`, `backup`, `restore`, `rescale` and `state`, each a real process, on runs that go on or were killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

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
    project: Project, undisturbed: Output
) -> None:
    project.stop_after(4)
    said(project.run(".", "kept", command="backup"))
    at = project.epoch
    shutil.rmtree(project.state)
    assert f"is at epoch {at}" in said(project.run("kept", command="restore"))
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {at}" in done.stderr
    assert project.output() == undisturbed


def test_a_half_copied_backup_is_refused_by_what_is_missing(project: Project) -> None:
    project.stop_after(3)
    said(project.run(".", "kept", command="backup"))
    missing = next(path for path in (project.folder / "kept/checkpoint/state").rglob("*.changelog"))
    missing.unlink()
    refused = project.run("kept", "--replace", command="restore")
    assert refused.returncode == 1
    assert f"{missing.relative_to(project.folder / 'kept')} is missing" in refused.stderr
    (project.folder / "kept" / "manifest").unlink()
    refused = project.run("kept", "--replace", command="restore")
    assert refused.returncode == 1
    assert "copied only in part" in refused.stderr


def test_a_backup_fits_a_topology_with_operators_added_and_removed(project: Project) -> None:
    project.stop_after(3)
    said(project.run(".", "kept", command="backup"))
    at = project.epoch
    changed = TOPOLOGY.replace("  odd:    {from: readings, filter: \"n % 2 = 1\"}\n", "").replace(
        "  counts: {from: odd, count: sensor}\n",
        "  seen:   {from: readings, uniq: sensor}\n  counts: {from: readings, count: sensor}\n",
    ).replace("  odd:    {from: odd, file: out/odd.jsonl}\n", "  seen:   {from: seen, file: out/seen.jsonl}\n")
    project.file.write_text(changed)
    refused = project.run()
    assert refused.returncode == 2
    looked = project.run("kept", "--replace", "--dry-run", command="restore")
    assert "nothing was changed" in said(looked)
    assert "operator 'seen' is new: it begins empty" in looked.stderr
    assert f"is at epoch {at}" in said(project.run("kept", "--replace", command="restore"))
    done = project.run()
    assert done.returncode == 0, done.stderr
    last = {row["sensor"]: row["count"] for row in map(json.loads, project.output()["counts"])}
    rows = EPOCHS * ROWS_IN_EPOCH
    # Up to the backup only odd readings were counted, afterwards all.
    later = Counter(SENSORS[n % 3] for n in range(at * ROWS_IN_EPOCH, rows))
    expected = {name: counts_after(at).get(name, 0) + later[name] for name in SENSORS}
    assert {name: max(row["count"] for row in map(json.loads, project.output()["counts"]) if row["sensor"] == name)
            for name in last} == expected
    assert len(project.output()["seen"]) == len(SENSORS)


def test_state_is_divided_anew_and_the_output_stays_the_same(project: Project, undisturbed: Output) -> None:
    project.stop_after(3)
    split = project.run(".", "counts=5", command="rescale")
    assert "'counts' is divided over 5 instances instead of 2" in said(split)
    project.stop_after(project.epoch + 3)
    merged = project.run(".", "counts=3", command="rescale")
    assert "'counts' is divided over 3 instances instead of 5" in said(merged)
    at = project.epoch
    found = [json.loads(line) for line in said(project.run(".", "counts", "--json", command="state")).splitlines()]
    assert {row["sensor"]: row["count"] for row in found} == counts_after(at)
    assert all(row["instance"] < 3 for row in found)
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert project.output() == undisturbed


@pytest.mark.parametrize("wanted", ["counts=0", "counts=2", "odd=3", "none=3", "counts"])
def test_what_cannot_be_rescaled_gets_a_clear_answer(project: Project, wanted: str) -> None:
    project.state.mkdir(parents=True)
    answer = project.run(".", wanted, command="rescale")
    expected = {
        "counts=0": (2, "needs at least one instance"),
        "counts=2": (1, "has committed no epoch yet"),
        "odd=3": (2, "operator 'odd' remembers nothing that could be divided"),
        "none=3": (2, "there is no operator 'none'"),
        "counts": (2, "write OPERATOR=N"),
    }[wanted]
    assert answer.returncode == expected[0], answer.stderr
    assert expected[1] in answer.stderr


def test_a_rescale_that_is_killed_leaves_the_old_state_or_the_new(project: Project, undisturbed: Output) -> None:
    project.stop_after(4)
    for moment in ("prepared/checkpoint/offsets", "prepared/shape"):
        process = subprocess.Popen(
            [PENSTOCK, "rescale", ".", "counts=4"], cwd=project.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        reached = Path(project.state, moment)
        wait_until(lambda here=reached, running=process: here.exists() or running.poll() is not None, PATIENCE_SECONDS)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said(project.run(".", "--json", command="state"))
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert project.output() == undisturbed
    assert not (project.state / "prepared").exists()


def test_state_shows_sizes_keys_and_values(project: Project) -> None:
    project.stop_after(5)
    at = project.epoch
    table = said(project.run(".", command="state"))
    assert f"state of readings after epoch {at}" in table
    assert "counts" in table
    one = said(project.run(".", "counts", "--key", "sensor=roof", "--json", command="state"))
    assert json.loads(one)["count"] == counts_after(at)["roof"]
    exported = project.run(".", "counts", "--export", "counts.parquet", command="state")
    assert f"{len(SENSORS)} keys of 'counts' after epoch {at} are in counts.parquet" in said(exported)
    import pyarrow.parquet as pq

    rows = pq.read_table(project.folder / "counts.parquet").to_pylist()
    assert {row["sensor"]: row["count"] for row in rows} == counts_after(at)
    refused = project.run(".", "odd", command="state")
    assert refused.returncode == 2
    assert "operator 'odd' remembers nothing; with state there are: counts" in refused.stderr
