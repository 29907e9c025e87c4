"""What may befall replicas besides a kill: clocks that differ, servers that die, a full disk, chance in code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.chaos.life import Session
from penstock.chaos.small_disk import small_disk
from penstock.runtime.state_folder import StateFolder

from ..own_mounts import with_own_mounts
from ..servers.spark_cluster import spark_cluster
from ..servers.zookeeper import ZookeeperServer
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS, PENSTOCK
from .readings import Project
from .replicated import owner, stream

pytestmark = pytest.mark.by_itself

INTERVAL = "500ms"
QUIET_SECONDS = 3.0
"""Six epochs long."""
CODE = "def tagged(tup):\n    return tup.id, tup.key\n"
CHANCE = "import random\n\ndef tagged(tup):\n    return tup.id, random.choice('abc')\n"
TEN_MINUTES_AHEAD = "+600"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The stream in a folder of its own; no replica of it is left afterwards."""
    with owner(monkeypatch):
        project = Project.new(tmp_path / "project", stream(INTERVAL))
        (project.folder / "own.py").write_text(CODE)
        yield project


def epochs(project: Project) -> list[int]:
    """How far each replica is."""
    return [state.committed().epoch for state in StateFolder(project.state).replicas().values()]


def stands_still(project: Project) -> Callable[[], bool]:
    """Whether no replica has done an epoch for some time, since it was first asked."""
    last, since = epochs(project), time.monotonic()

    def still() -> bool:
        nonlocal last, since
        if (now := epochs(project)) != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= QUIET_SECONDS

    return still


def each_tuple_once(project: Project) -> int:
    """How many tuples came out, when each did once and they were counted right."""
    ids = Counter(json.loads(line)["id"] for line in project.output()["all"])
    assert sorted(ids) == list(range(len(ids)))
    assert set(ids.values()) == {1}
    counts = [json.loads(line) for line in project.output()["counts"]]
    assert sum(max(row["count"] for row in counts if row["key"] == key) for key in "abc") == len(ids)
    return len(ids)


# -- by hand ----------------------------------------------------------------------------------------


def fake_time() -> str:
    """The library that has a process see another time; under root it is installed when it is missing."""
    if shutil.which("faketime") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "faketime"]):
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    assert found, "this test needs libfaketime: install it (Debian: apt-get install faketime)"
    return str(found[0])


class ByHand:
    """Two replicas that nobody watches; the clock of the second is ten minutes ahead."""

    def __init__(self, project: Project, coordinator: str, logs: Path) -> None:
        logs.mkdir()
        ahead = {"LD_PRELOAD": fake_time(), "FAKETIME": TEN_MINUTES_AHEAD}
        self.processes = []
        for name, further in (("1", {}), ("2", ahead)):
            command = [PENSTOCK, "run", "--replica", name, "--coordinator", coordinator]
            with (logs / name).open("w") as log:
                self.processes.append(subprocess.Popen(
                    command, cwd=project.folder, env={**os.environ, **further}, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=log, start_new_session=True))
        self._logs = logs

    def until_both(self, project: Project, epoch: int) -> None:
        wait_until(lambda: len(epochs(project)) == 2 and min(epochs(project)) >= epoch, PATIENCE_SECONDS,
                   self.are_alive, self.said)

    def are_alive(self) -> bool:
        return all(process.poll() is None for process in self.processes)

    def said(self) -> str:
        return "\n".join(log.read_text()[-2000:] for log in sorted(self._logs.iterdir()))

    def kill(self) -> None:
        for process in self.processes:
            Session(process.pid).kill_all()
        for process in self.processes:
            process.wait()


def test_clocks_that_differ_a_coordinator_that_dies_and_the_death_of_all_at_once_lose_nothing(
    project: Project, tmp_path: Path, zookeeper: ZookeeperServer
) -> None:
    coordinator = f"zookeeper://{zookeeper.hosts}/replica-troubles"
    replicas = ByHand(project, coordinator, tmp_path / "first")
    try:
        replicas.until_both(project, 6)
        again = project.run("--replica", "1", "--coordinator", coordinator)
        assert again.returncode != 0
        assert "replica 1 is running already" in again.stderr
        with zookeeper.away():
            # Nobody goes on alone, and nobody gives up.
            wait_until(stands_still(project), PATIENCE_SECONDS, replicas.are_alive, replicas.said)
            before = max(epochs(project))
        replicas.until_both(project, before + 6)
    finally:
        replicas.kill()
    reached = max(epochs(project))
    replicas = ByHand(project, coordinator, tmp_path / "second")
    try:
        replicas.until_both(project, reached + 6)
        for process in replicas.processes:
            process.send_signal(signal.SIGINT)
        assert [process.wait(PATIENCE_SECONDS) for process in replicas.processes] == [0, 0], replicas.said()
    finally:
        replicas.kill()
    assert each_tuple_once(project) > 0
    with_time = project.run(".", "--json", "--coordinator", coordinator, command="epochs")
    times = [json.loads(line)["time_ms"] for line in with_time.stdout.splitlines()]
    assert times == sorted(times)


# -- watched ----------------------------------------------------------------------------------------


def test_a_spark_cluster_that_dies_takes_only_the_replica_in_it_which_comes_back_with_it(
    project: Project, tmp_path: Path
) -> None:
    def told(word: str) -> bool:
        return any(word in json.dumps(each) for each in run.events())

    with spark_cluster(tmp_path / "cluster") as cluster:
        # Two cores have a cluster, its executor and two drivers to share.
        project.file.write_text(stream("2s", cells=f'["{cluster.url}", local]'))
        with project.running() as run:
            run.until(lambda: len(epochs(project)) == 2 and min(epochs(project)) >= 2)
            cluster.kill()
            reached = max(epochs(project))
            run.until(lambda: max(epochs(project)) >= reached + 6)
            run.until(lambda: told("replica 1 gives no sign of life, or is stuck"))
            first = StateFolder(project.state).replica("1")
            before = first.committed().epoch
            cluster.start()
            run.until(lambda: first.committed().epoch > max(before, reached))
            run.signal_group(signal.SIGINT)
            assert run.finish() == 0, run.errors
    assert each_tuple_once(project) > 0


@with_own_mounts
def test_the_full_disk_of_one_replica_is_no_concern_of_the_others(project: Project) -> None:
    second = project.state / "replicas" / "2"
    second.mkdir(parents=True)
    with small_disk(second, megabytes=32) as disk:
        assert not disk.refused or os.geteuid() != 0
        with project.running() as run:
            run.until(lambda: len(epochs(project)) == 2 and min(epochs(project)) >= 4)
            disk.fill()
            run.until(lambda: bool(disk.refused) or any("no space left" in json.dumps(each) for each in run.events()))
            reached = max(epochs(project))
            run.until(lambda: max(epochs(project)) >= reached + 10)
            disk.free()
            run.signal_group(signal.SIGINT)
            assert run.finish() == 0, run.errors
        assert each_tuple_once(project) > 0


def test_code_that_is_not_deterministic_ends_the_run_where_wanted_until_it_is_corrected(project: Project) -> None:
    project.file.write_text(stream(INTERVAL, on_divergence="stop"))
    (project.folder / "own.py").write_text(CHANCE)
    with project.running() as run:
        assert run.finish() == 1
        assert "tagged" in run.errors
        assert "Traceback" not in run.errors
    (project.folder / "own.py").write_text(CODE)
    reached = max(epochs(project))
    with project.running() as run:
        # What they had counted with it does not stop them again.
        run.until(lambda: min(epochs(project)) >= reached + 6)
        run.signal_group(signal.SIGINT)
        assert run.finish() == 0, run.errors


def test_code_that_is_not_deterministic_is_told_until_it_is_corrected_while_results_go_on(project: Project) -> None:
    # On a slow machine a replica that was restarted does not catch up with shorter ones.
    project.file.write_text(stream("1s"))
    (project.folder / "own.py").write_text(CHANCE)

    def differing() -> str:
        status = project.run("--json", command="status")
        return str(json.loads(status.stdout)["divergence"]) if status.returncode == 0 else ""

    with project.running() as run:
        run.until(lambda: any("first in 'tagged'" in json.dumps(each) for each in run.events()))
        assert "first in 'tagged'" in differing()
        reached = max(epochs(project))
        run.until(lambda: max(epochs(project)) >= reached + 6)
        (project.folder / "own.py").write_text(CODE)
        restarted = project.run(".", command="restart", patience=2 * PATIENCE_SECONDS)
        assert restarted.returncode == 0, restarted.stderr
        reached = min(epochs(project))
        run.until(lambda: min(epochs(project)) >= reached + 6)
        assert differing() == ""
        run.signal_group(signal.SIGINT)
        assert run.finish() == 0, run.errors
    ids = Counter(json.loads(line)["id"] for line in project.output()["all"])
    assert sorted(ids) == list(range(len(ids)))
    assert set(ids.values()) == {1}
