"""Replicas that commit the same epochs to one file at the same time, in any order, some of them asleep for long."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors import agreed_file
from penstock.connectors.base import Place, Staged
from penstock.connectors.file_sink import FileSink

EPOCHS = 30


def sink(folder: Path, file: str = "out.jsonl", **options: object) -> FileSink:
    return FileSink.configure(Place("t", "out", folder), {"file": file, **options})


def rows(epoch: int) -> list[str]:
    return [f"{epoch}:{n}\n" for n in range(epoch % 4)]


def stage(target: FileSink, epoch: int, shuffled: random.Random) -> list[Staged]:
    """As a replica does: the same rows, in an order of its own, in parts of its own."""
    lines = rows(epoch)
    shuffled.shuffle(lines)
    middle = shuffled.randint(0, len(lines))
    return [target.stage(iter([batch(part)])) for part in (lines[:middle], lines[middle:]) if part]


def batch(lines: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"line": pa.array(lines, pa.string())})


@pytest.mark.parametrize("file", ["out.jsonl", "out/"])
def test_replicas_that_race_write_every_epoch_once_and_whole(tmp_path: Path, file: str) -> None:
    sink(tmp_path, file).open(fresh=True)
    wrong: list[BaseException] = []

    def replica(seed: int) -> None:
        own = sink(tmp_path, file).shared()
        own.open(fresh=False)
        shuffled = random.Random(seed)
        try:
            for epoch in range(1, EPOCHS + 1):
                own.commit(epoch, stage(own, epoch, shuffled))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=replica, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    found = [line + "\n" for part in sink(tmp_path, file).read_back() for line in part.column("line").to_pylist()]
    # Epoch after epoch; within one, in the order of whoever was first.
    by_epoch = [line for epoch in range(1, EPOCHS + 1) for line in sorted(rows(epoch))]
    assert sorted(found) == sorted(by_epoch)
    assert [line.partition(":")[0] for line in found] == [line.partition(":")[0] for line in by_epoch]
    assert sink(tmp_path, file).last_epoch() == EPOCHS
    staging = sink(tmp_path, file)._staging
    assert not [path for path in staging.rglob("*") if path.is_file() and path.parent.name != "ends"]


@pytest.mark.parametrize("moment", ["link_first_wins", "_write_at"])
def test_a_replica_that_wakes_up_long_after_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    sink(tmp_path).open(fresh=True)
    sleeper, sibling = sink(tmp_path).shared(), sink(tmp_path).shared()
    shuffled = random.Random(1)
    for epoch in (1, 2):
        sibling.commit(epoch, stage(sibling, epoch, shuffled))
    original = getattr(agreed_file, moment)
    after: dict[str, bytes] = {}

    def wakes_up_late(*arguments: object) -> object:
        # While this one is frozen here, a sibling does its epoch and many more.
        monkeypatch.setattr(agreed_file, moment, original)
        for epoch in range(3, 60):
            sibling.commit(epoch, stage(sibling, epoch, shuffled))
        after["siblings"] = (tmp_path / "out.jsonl").read_bytes()
        return original(*arguments)

    staged = stage(sleeper, 3, random.Random(99))
    monkeypatch.setattr(agreed_file, moment, wakes_up_late)
    sleeper.commit(3, staged)
    assert (tmp_path / "out.jsonl").read_bytes() == after["siblings"]
    assert sleeper.last_epoch() == 59
    sibling.commit(60, stage(sibling, 60, shuffled))
    expected = sorted(line for epoch in range(1, 61) for line in rows(epoch))
    assert sorted((tmp_path / "out.jsonl").read_text().splitlines(keepends=True)) == expected


def test_bytes_that_a_third_replica_gives_the_name_of_a_finished_epoch_are_not_written(tmp_path: Path) -> None:
    """One sleeps at the very moment at which its siblings finish the epoch, and a third one comes too late."""
    target, agreed = tmp_path / "out.jsonl", tmp_path / "agreed"
    own, third = tmp_path / "own", tmp_path / "third"
    own.write_text("a\nb\n")
    third.write_text("b\na\n")

    def sleeps() -> bool:
        agreed.unlink()
        agreed.hardlink_to(third)
        return False

    assert agreed_file.append_agreed(target, agreed, own, 0, sleeps) == 4
    assert target.read_text() == "a\nb\n"


def test_what_a_killed_replica_has_begun_is_finished_by_its_sibling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink(tmp_path).open(fresh=True)
    killed, sibling = sink(tmp_path).shared(), sink(tmp_path).shared()

    def dies(target: Path, start: int, source: int) -> int:
        with target.open("r+b") as file:
            file.seek(start)
            file.write(b"3:")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(agreed_file, "_write_at", dies)
        with pytest.raises(KeyboardInterrupt):
            killed.commit(3, stage(killed, 3, random.Random(5)))
    sibling.commit(3, stage(sibling, 3, random.Random(6)))
    assert sorted((tmp_path / "out.jsonl").read_text().splitlines(keepends=True)) == rows(3)


def test_one_run_alone_goes_on_where_replicas_have_stopped_and_the_other_way_round(tmp_path: Path) -> None:
    sink(tmp_path).open(fresh=True)
    shuffled = random.Random(3)
    for first, shared in ((1, False), (4, True), (7, False), (10, True)):
        own = sink(tmp_path).shared() if shared else sink(tmp_path)
        own.open(fresh=False)
        for epoch in range(first, first + 3):
            own.commit(epoch, stage(own, epoch, shuffled))
        own.close()
    expected = sorted(line for epoch in range(1, 13) for line in rows(epoch))
    assert sorted((tmp_path / "out.jsonl").read_text().splitlines(keepends=True)) == expected
