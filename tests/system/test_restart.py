"""Runs that are stopped, killed, started twice or changed, and the start after that."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from .readings import EPOCHS, ROWS_IN_EPOCH, TOPOLOGY, Output, Project


def test_however_a_run_is_ended_the_next_start_goes_on(project: Project, undisturbed: Output) -> None:
    reached = 0
    for number, ending in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        with project.running() as run:
            run.until_epoch(3 + 5 * number)
            if ending == signal.SIGTERM:
                run.signal(ending)
            else:
                run.signal_group(ending)
            assert run.finish() == (-ending if ending == signal.SIGKILL else 0), run.errors
            events = run.events()
        if ending != signal.SIGKILL:
            assert events[-1]["event"] == "end"
            assert events[-1]["epoch"] == project.epoch
            assert events[-1]["how"].endswith("the same command goes on from here")
        assert (f"going on after epoch {reached}" in str(events)) == (reached > 0)
        assert reached < project.epoch < EPOCHS
        reached = project.epoch
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {reached}" in done.stderr
    assert project.output() == undisturbed
    shows_its_epochs(project)


def shows_its_epochs(project: Project) -> None:
    listed = project.run("--last", "100", "--json", command="epochs")
    assert listed.returncode == 0, listed.stderr
    records = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [record["epoch"] for record in records] == list(range(1, EPOCHS + 1))
    assert all(record["committed"] for record in records)
    assert all(record["tuples"] == {"readings": ROWS_IN_EPOCH} for record in records)
    assert [record["last"] for record in records] == [False] * (EPOCHS - 1) + [True]
    table = project.run("--last", "2", command="epochs")
    assert table.returncode == 0, table.stderr
    assert "epochs of readings" in table.stdout
    rows = [line for line in table.stdout.splitlines() if f"readings {ROWS_IN_EPOCH}" in line]
    assert [str(number) in row for number, row in zip((EPOCHS - 1, EPOCHS), rows, strict=True)] == [True, True]
    assert "committed, the last" in rows[-1]


def test_of_two_starts_in_one_place_the_second_says_who_holds_it(project: Project, undisturbed: Output) -> None:
    with project.running() as run:
        run.until_epoch(2)
        for arguments in ((), ("--fresh",)):
            second = project.run(*arguments)
            assert second.returncode == 1
            assert f"this topology is running already (process {run.pid} since" in second.stderr
            assert "stop it first, or run with another --state" in second.stderr
            assert "starting Spark" not in second.stderr
        assert run.finish() == 0, run.errors
    assert project.output() == undisturbed


def test_a_changed_topology_goes_on_where_its_state_fits_and_is_refused_where_it_does_not(
    project: Project, undisturbed: Output
) -> None:
    project.stop_after(3)
    project.file.write_text(TOPOLOGY.replace("count: sensor", "count: n"))
    before = project.output()
    refused = project.run()
    assert refused.returncode == 2
    assert "stateful operator 'counts': keys was sensor, now n" in refused.stderr
    assert "start anew with --fresh" in refused.stderr
    assert "starting Spark" not in refused.stderr
    assert project.output() == before
    other = project.copied_to(project.folder.with_name("other"))
    project.file.write_text(TOPOLOGY.replace("n % 2 = 1", "n % 2 = 1 and n >= 0"))
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert "going on after epoch" in done.stderr
    assert project.output() == undisturbed
    afresh = other.run("--fresh")
    assert afresh.returncode == 0, afresh.stderr
    assert "going on" not in afresh.stderr
    output = other.output()
    assert output["odd"] == undisturbed["odd"]
    assert {json.loads(line)["count"] for line in output["counts"]} == {1}


def test_a_damaged_newest_file_of_the_checkpoint_is_mended(project: Project, undisturbed: Output) -> None:
    said = []
    for number, damaged in enumerate((newest_commit, newest_offsets, newest_state)):
        with project.running() as run:
            run.until_epoch(4 + 5 * number)
            run.signal_group(signal.SIGKILL)
            run.finish()
            said += run.events()
        file = damaged(project)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    done = project.run()
    assert done.returncode == 0, done.stderr
    for log in ("commits", "offsets"):
        assert f"checkpoint/{log}/" in str(said)
    assert re.search(r"the state after epoch \d+ cannot be read: that epoch is done again", done.stderr)
    assert project.output() == undisturbed


def newest_commit(project: Project) -> Path:
    return max((project.state / "checkpoint/commits").glob("[0-9]*"), key=lambda path: int(path.name))


def newest_offsets(project: Project) -> Path:
    return max((project.state / "checkpoint/offsets").glob("[0-9]*"), key=lambda path: int(path.name))


def newest_state(project: Project) -> Path:
    """A file of the state that the next start goes on from; that of an epoch in flight is written anew."""
    version = int(newest_commit(project).name) + 1
    return next((project.state / "checkpoint/state").glob(f"*/*/{version}.changelog"))
