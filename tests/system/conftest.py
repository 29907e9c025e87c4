"""Real `penstock` processes, as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from ..servers.chromium import chromium
from ..servers.postgresql import PostgresServer, running_postgresql
from ..servers.zookeeper import ZookeeperServer, zookeeper_server
from .browsing import opened
from .made_up_node import MadeUpNode, made_up_node
from .penstock_command import PATIENCE_SECONDS, PENSTOCK
from .readings import Output, Project, undisturbed_output
from .running_console import Console, master_alone

Penstock = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def penstock(tmp_path: Path) -> Penstock:
    """Run `penstock` with some arguments in the test's folder, to its end."""

    def run(
        *arguments: str, cwd: Path = tmp_path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PENSTOCK, *arguments], cwd=cwd, env={**os.environ, **(env or {})}, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False)

    return run


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.new(tmp_path / "project")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """What a run of a `project` leaves that nobody disturbs."""
    return undisturbed_output(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture(scope="session")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.new(tmp_path_factory.mktemp("stopped") / "project")
    project.stop_after(4)
    backed_up = project.run(".", "kept", command="backup")
    assert backed_up.returncode == 0, backed_up.stderr
    return project


@pytest.fixture
def stopped(stopped_once: Project, tmp_path: Path) -> Project:
    """A `project` whose run was stopped by Ctrl-C after a few epochs, with a backup of it in `kept`."""
    return stopped_once.copied_to(tmp_path / "stopped")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """One server for all: whoever stops it starts it again."""
    with running_postgresql() as running:
        yield running


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """One server for all: whoever stops it starts it again."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser) as page:
        yield page


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Console]:
    with master_alone(tmp_path) as master:
        yield master


@pytest.fixture
def node(alone: Console) -> Iterator[MadeUpNode]:
    """A node that runs nothing, for a console without Spark."""
    with made_up_node(alone.home) as node:
        yield node


class Following:
    """A `penstock run --json` that does not end by itself, and what it says line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def rows(self, number: int) -> list[Any]:
        """The next rows of console sinks; waits until there are so many."""
        found: list[Any] = []
        assert self._process.stdout is not None
        while len(found) < number:
            line = self._process.stdout.readline()
            assert line, f"ended with {self._process.wait()} after {found}"
            event = json.loads(line)
            found += [event["row"]] if event["event"] == "row" else []
        return found

    def interrupt(self) -> tuple[int, list[Any]]:
        """Ctrl-C, which reaches the whole process group: the exit code, and the events until the end."""
        os.killpg(self._process.pid, signal.SIGINT)
        rest, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        return self._process.returncode, [json.loads(line) for line in rest.splitlines()]


@pytest.fixture
def following(tmp_path: Path) -> Callable[[], Any]:
    @contextmanager
    def start() -> Iterator[Following]:
        process = subprocess.Popen(
            [PENSTOCK, "run", "--json"], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        killer = threading.Timer(PATIENCE_SECONDS, process.kill)
        killer.start()
        try:
            yield Following(process)
        finally:
            killer.cancel()
            process.kill()
            process.wait()

    return start
