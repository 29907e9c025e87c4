"""Runs that are stopped, killed, started twice or changed, and the start after that."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from .readings import EPOCHS, ROWS_IN_EPOCH, TOPOLOGY, Output, Project, Running


def test_however_a_run_is_ended_the_next_start_goes_on(stopped: Project, undisturbed: Output) -> None:
    """First by Ctrl-C, then by SIGTERM to the process alone, then by `kill -9`."""
    assert 0 < stopped.epoch < EPOCHS
    for ending in (signal.SIGTERM, signal.SIGKILL):
        reached = stopped.epoch
        with stopped.running() as run:
            run.until_epoch(reached + 3)
            if ending == signal.SIGTERM:
                nobody_else_may_start(stopped, run)
                run.signal(ending)
                assert run.finish() == 0, run.errors
                run.has_said_that_it_was_stopped()
            else:
                run.signal_group(ending)
                assert run.finish() == -ending
            assert f"going on after epoch {reached}" in str(run.events())
        assert reached < stopped.epoch < EPOCHS
    reached = stopped.epoch
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    assert f"going on after epoch {reached}" in done.stderr
    assert stopped.output() == undisturbed
    shows_its_epochs(stopped)


def nobody_else_may_start(project: Project, run: Running) -> None:
    """It is frozen meanwhile, so that it does not come to its end."""
    run.signal_group(signal.SIGSTOP)
    for arguments in ((), ("--fresh",)):
        second = project.run(*arguments)
        assert second.returncode == 1
        assert f"this topology is running already (process {run.pid} since" in second.stderr
        assert "stop it first, or run with another --state" in second.stderr
        assert "starting Spark" not in second.stderr
    run.signal_group(signal.SIGCONT)


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


def test_a_changed_topology_goes_on_where_its_state_fits_and_is_refused_where_it_does_not(
    stopped: Project, undisturbed: Output
) -> None:
    stopped.file.write_text(TOPOLOGY.replace("count: sensor", "count: n"))
    before = stopped.output()
    refused = stopped.run()
    assert refused.returncode == 2
    assert "stateful operator 'counts': keys was sensor, now n" in refused.stderr
    assert "start anew with --fresh" in refused.stderr
    assert "starting Spark" not in refused.stderr
    assert stopped.output() == before
    other = stopped.copied_to(stopped.folder.with_name("other"))
    stopped.file.write_text(TOPOLOGY.replace("n % 2 = 1", "n % 2 = 1 and n >= 0"))
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    assert "going on after epoch" in done.stderr
    assert stopped.output() == undisturbed
    afresh = other.run("--fresh")
    assert afresh.returncode == 0, afresh.stderr
    assert "going on" not in afresh.stderr
    output = other.output()
    assert output["odd"] == undisturbed["odd"]
    assert {json.loads(line)["count"] for line in output["counts"]} == {1}


def test_a_damaged_newest_file_of_the_checkpoint_is_mended(stopped: Project, undisturbed: Output) -> None:
    """Of the state after a stop; of the commits and of the offsets after `kill -9`, with an epoch in flight."""
    said = []
    for damaged in (newest_state, newest_commit):
        cut_in_half(damaged(stopped))
        with stopped.running() as run:
            run.until_epoch(stopped.epoch + 4)
            run.signal_group(signal.SIGKILL)
            run.finish()
            said.append(str(run.events()))
    cut_in_half(newest_offsets(stopped))
    done = stopped.run()
    assert done.returncode == 0, done.stderr
    assert re.search(r"the state after epoch \d+ cannot be read: that epoch is done again", said[0])
    assert "checkpoint/commits/" in said[1]
    assert "checkpoint/offsets/" in done.stderr
    assert stopped.output() == undisturbed


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def newest_commit(project: Project) -> Path:
    return max((project.state / "checkpoint/commits").glob("[0-9]*"), key=lambda path: int(path.name))


def newest_offsets(project: Project) -> Path:
    return max((project.state / "checkpoint/offsets").glob("[0-9]*"), key=lambda path: int(path.name))


def newest_state(project: Project) -> Path:
    """A file of the state that the next start goes on from; that of an epoch in flight is written anew."""
    version = int(newest_commit(project).name) + 1
    return next((project.state / "checkpoint/state").glob(f"*/*/{version}.changelog"))
