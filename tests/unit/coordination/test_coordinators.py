"""One suite that every coordinator passes."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest

from penstock.coordination.base import Coordinator
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.sqlite import SqliteCoordinator
from penstock.errors import CoordinationError


@pytest.fixture(params=["memory", "sqlite"])
def coordinator(request: pytest.FixtureRequest, tmp_path: Path) -> Coordinator:
    return MemoryCoordinator() if request.param == "memory" else SqliteCoordinator(tmp_path / "c.sqlite")


def test_the_first_writer_wins(coordinator: Coordinator) -> None:
    assert coordinator.create_if_absent("epochs/1", "mine") == "mine"
    assert coordinator.create_if_absent("epochs/1", "yours") == "mine"
    assert coordinator.get("epochs/1") == "mine"


def test_a_missing_key_is_none(coordinator: Coordinator) -> None:
    assert coordinator.get("nothing") is None


def test_keys_are_listed_by_prefix_and_in_order(coordinator: Coordinator) -> None:
    for key in ("epochs/2", "epochs/1", "epoch", "stop/x"):
        coordinator.create_if_absent(key, "")
    assert coordinator.list("epochs/") == ["epochs/1", "epochs/2"]


def test_a_deleted_key_can_be_created_again(coordinator: Coordinator) -> None:
    coordinator.create_if_absent("k", "old")
    coordinator.delete("k")
    coordinator.delete("k")
    assert coordinator.create_if_absent("k", "new") == "new"


def test_of_many_threads_exactly_one_wins(coordinator: Coordinator) -> None:
    held: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: held.append(coordinator.create_if_absent("k", str(n))))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 8
    assert len(set(held)) == 1


def _propose(path: str, number: int, answers: multiprocessing.SimpleQueue[str]) -> None:
    answers.put(SqliteCoordinator(Path(path)).create_if_absent("k", str(number)))


def test_of_many_processes_exactly_one_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    path = str(tmp_path / "c.sqlite")
    processes = [context.Process(target=_propose, args=(path, number, answers)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert len({answers.get() for _ in processes}) == 1


def test_a_file_that_cannot_be_used_is_said_to_be(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CoordinationError, match="cannot be used"):
        SqliteCoordinator(blocked / "c.sqlite")
