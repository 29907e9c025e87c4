"""A disk that is really full, under a master and under a node: it is said, and all goes on when there is room again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.small_disk import Disk, small_disk
from penstock.console import node_supervisor
from penstock.console.bundle import contents, digest_of, pack
from penstock.console.desired import Desired, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, Nodes
from penstock.console.topology_log import shorten
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.opening import open_coordinator
from penstock.errors import ConsoleError

from ...own_mounts import with_own_mounts
from ...waiting import wait_until
from .looking import look_with_files
from .running_console import running_console

NO_ROOM = "No space left on device"
TOPOLOGY = """\
topology: count
sources:
  ticks: {generator: {id: sequence}, count: 10}
sinks:
  out: {from: ticks, file: out/rows.jsonl}
"""


@contextmanager
def home_on_a_small_disk(tmp_path: Path) -> Iterator[tuple[ConsoleHome, Disk]]:
    with small_disk(tmp_path / "disk", 1) as disk:
        assert not disk.refused, disk.refused
        yield ConsoleHome(disk.folder / "home"), disk


def packed_in(folder: Path) -> bytes:
    own = folder / "own"
    own.mkdir()
    (own / "topology.yaml").write_text(TOPOLOGY)
    return pack(own)


@with_own_mounts
def test_a_master_whose_disk_is_full_takes_no_files_and_still_commands(tmp_path: Path) -> None:
    packed = packed_in(tmp_path)
    with home_on_a_small_disk(tmp_path) as (home, disk), running_console(home.path) as console:
        wait_until(lambda: console.master.leading)
        submit = lambda: console.client.submit(packed, "topology.yaml", (), True, False)  # noqa: E731
        submit()
        (bundle,) = (home.path / "bundles").iterdir()
        disk.fill()
        with pytest.raises(ConsoleError, match=f"its files cannot be kept here: {NO_ROOM}"):
            submit()
        # What was there is whole, and nothing half is beside it.
        assert [path.name for path in (home.path / "bundles").iterdir()] == [bundle.name]
        assert bundle.read_bytes() == packed
        # A line more may fit where the last one ends, but not a hundred.
        answers = [console.client.command("count", "stop") for _ in range(100)]
        assert all(answer["done"] for answer in answers)
        assert f"{home.audit}: {NO_ROOM}" in answers[-1]["warning"]
        disk.free()
        assert "warning" not in submit()
        # No line stands behind half of one.
        assert json.loads(home.audit.read_text().splitlines()[-1])["outcome"] == "done"
        assert all(json.loads(line)["who"] for line in home.audit.read_text().splitlines())


@with_own_mounts
def test_a_coordinator_on_a_full_disk_refuses_and_goes_on_afterwards(tmp_path: Path) -> None:
    packed = packed_in(tmp_path)
    with home_on_a_small_disk(tmp_path) as (home, disk):
        home.path.mkdir()
        coordinator = open_coordinator(home.coordinator)
        try:
            with running_console(home.path, coordinator) as console:
                wait_until(lambda: console.master.leading)
                console.client.submit(packed, "topology.yaml", (), False, False)
                disk.fill()
                with pytest.raises(ConsoleError, match=r"console\.sqlite cannot be used: .*full.* has room"):
                    # What the file has room for inside is taken all the same.
                    for _ in range(1000):
                        console.client.command("count", "start")
                # Whoever looks is told what is known.
                assert console.client.get("/api/topologies")[0]["name"] == "count"
                disk.free()

                def stopped() -> bool:
                    try:
                        return bool(console.client.command("count", "stop")["done"])
                    except ConsoleError:
                        return False

                wait_until(stopped)
        finally:
            coordinator.close()


@with_own_mounts
def test_a_node_whose_disk_is_full_says_so_and_starts_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = packed_in(tmp_path)
    monkeypatch.setattr(node_supervisor, "_TROUBLE_SECONDS", 0.0)
    monkeypatch.setattr(node_supervisor, "_FETCH_AGAIN_SECONDS", 0.0)
    started = list[list[str]]()

    def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        started.append(command)
        return subprocess.Popen([sys.executable, "-c", ""], **options)

    # Only what the node starts: a disk is mounted by a process, too.
    monkeypatch.setattr(node_supervisor, "subprocess", SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL))
    with home_on_a_small_disk(tmp_path) as (home, disk):
        coordinator = MemoryCoordinator()
        Desired(coordinator).add(Wanted("count", digest_of(contents(packed)), "topology.yaml", nodes={"1": "n"}))
        node = NodeSupervisor(Node("n", "here", 1, "0"), home, coordinator, lambda _: packed)
        disk.fill()
        look_with_files(node, "count")
        seen = Nodes(coordinator).told()["count"]["n"]
        assert (seen["how"], NO_ROOM in seen["why"]) == ("starting", True)
        assert (started, node._tended["count"].there.failures) == ([], 0)
        disk.free()
        look_with_files(node, "count")
        assert len(started) == 1
        wait_until(lambda: node._tended["count"].process is None or node._tended["count"].process.poll() is not None)


@with_own_mounts
def test_a_log_that_fills_its_disk_is_cut_and_its_end_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.console.topology_log._LONGEST_LOG", 100_000)
    with home_on_a_small_disk(tmp_path) as (_, disk):
        log = disk.folder / "replica.log"
        log.write_text("line\n" * 40_000)
        disk.fill()
        shorten(log)
        assert log.stat().st_size == 0
        assert log.with_name("replica.log.1").read_text().endswith("line\nline")
