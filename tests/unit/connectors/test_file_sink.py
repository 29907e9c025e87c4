from __future__ import annotations

import csv
import errno
import fcntl
import json
import os
import resource
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.base import Place, SinkConnector, Staged
from penstock.connectors.file_sink import FileSink, explain
from penstock.connectors.staged_files import line_bytes
from penstock.errors import ConnectorError, TopologyError

from .sink_conformance import COLUMNS, Rows, SinkConformance, batch_for, some_rows, stage


def file_sink(folder: Path, file: str, topology: str = "reach", run: str = "", **options: Any) -> FileSink:
    return FileSink.configure(Place(topology, "out", folder, run), {"file": file, **options}).with_columns(COLUMNS)


def opened(folder: Path, file: str, fresh: bool = True, **options: Any) -> FileSink:
    sink = file_sink(folder, file, **options)
    sink.open(fresh=fresh)
    return sink


def json_rows(text: str) -> Rows:
    return [json.loads(line) for line in text.splitlines()]


def csv_rows(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return [{**row, "id": int(row["id"])} for row in csv.DictReader(file)]


def visible_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def staged_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".penstock-staging/*/*") if path.is_file()]


class TestGrowingJson(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return file_sink(folder, "out/reach.jsonl")

    def visible(self, folder: Path) -> Rows:
        return json_rows((folder / "out/reach.jsonl").read_text(encoding="utf-8"))


class TestGrowingCsv(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return file_sink(folder, "reach.csv")

    def visible(self, folder: Path) -> Rows:
        return csv_rows(folder / "reach.csv")


class TestFolderOfJson(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return file_sink(folder, "reach/")

    def visible(self, folder: Path) -> Rows:
        return json_rows("".join(path.read_text() for path in sorted(folder.glob("reach/epoch-*.jsonl"))))


class TestFolderOfCsv(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return file_sink(folder, "reach", format="csv")

    def visible(self, folder: Path) -> Rows:
        return [row for path in sorted(folder.glob("reach/epoch-*.csv")) for row in csv_rows(path)]


class TestFolderOfParquet(SinkConformance):
    def make(self, folder: Path) -> SinkConnector:
        return file_sink(folder, "reach.parquet")

    def visible(self, folder: Path) -> Rows:
        files = sorted(folder.glob("reach.parquet/epoch-*.parquet"))
        return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]


# What a path means.

@pytest.mark.parametrize(("file", "options", "format", "folder"), [
    ("out/reach.jsonl", {}, "json", False),
    ("out/reach.json", {}, "json", False),
    ("out/REACH.CSV", {}, "csv", False),
    ("out/reach.log", {}, "json", False),
    ("out/reach.parquet", {}, "parquet", True),
    ("out/reach", {}, "json", True),
    ("out/v1.2/", {}, "json", True),
    ("out/reach.txt", {"format": "csv"}, "csv", False),
    ("out/reach.jsonl", {"format": "parquet"}, "parquet", True),
    ("out/reach.jsonl", {"format": None}, "json", False),
])
def test_the_path_says_format_and_shape(
        file: str, options: dict[str, Any], format: str, folder: bool) -> None:
    sink = file_sink(Path("/data"), file, **options)
    assert (sink.format, sink.folder, sink.path) == (format, folder, Path("/data") / file)
    assert sink.encoding == {"json": "json", "csv": "csv", "parquet": "columns"}[format]


@pytest.mark.parametrize(("options", "message"), [
    ({"file": ""}, "sink 'out': file needs a path, for example out/out.jsonl"),
    ({"file": 3}, "file needs a path"),
    ({"file": "a.xml", "format": "xml"}, "format is 'xml'; use json, csv, parquet"),
])
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        FileSink.configure(Place("reach", "out", Path()), options)


# One file that grows.

def test_the_csv_header_stands_once_at_the_top(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.csv").with_columns(["id", "the, user"])
    for epoch in range(3):
        sink.commit(epoch, [stage(sink, [{"id": epoch, "user": "ann"}])])
    assert (tmp_path / "reach.csv").read_text() == 'id,"the, user"\n0,ann\n1,ann\n2,ann\n'


def test_csv_without_header(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.csv", header=False)
    sink.commit(0, [stage(sink, [{"id": 1, "user": "ann"}])])
    assert (tmp_path / "reach.csv").read_text() == "1,ann\n"


def test_a_crash_between_append_and_record_is_healed(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.jsonl")
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    with (tmp_path / "reach.jsonl").open("a") as file:
        file.write('{"id": 2, "user": "half a li')
    again = opened(tmp_path, "reach.jsonl", fresh=False)
    again.commit(1, [stage(again, some_rows(2, 2))])
    assert json_rows((tmp_path / "reach.jsonl").read_text()) == some_rows(0, 4)


def test_a_file_exists_even_if_nothing_was_ever_written(tmp_path: Path) -> None:
    opened(tmp_path, "out/reach.jsonl").close()
    assert (tmp_path / "out/reach.jsonl").read_bytes() == b""
    assert not (tmp_path / "out/.penstock-staging").exists()


@pytest.mark.parametrize("found", [b"", b"short"])
def test_a_file_that_lost_rows_is_not_continued(tmp_path: Path, found: bytes) -> None:
    sink = opened(tmp_path, "reach.jsonl")
    sink.commit(5, [stage(sink, some_rows(0, 2))])
    (tmp_path / "reach.jsonl").write_bytes(found)
    expected = rf"reach.jsonl has {len(found)} bytes, but \d+ were written up to epoch 5: put the file back"
    with pytest.raises(ConnectorError, match=expected):
        opened(tmp_path, "reach.jsonl", fresh=False)
    with pytest.raises(ConnectorError, match=expected):
        sink.commit(6, [stage(sink, some_rows(2, 2))])
    assert (tmp_path / "reach.jsonl").read_bytes() == found


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/"])
def test_a_lost_record_stops_the_run_and_destroys_nothing(tmp_path: Path, file: str) -> None:
    sink = opened(tmp_path, file)
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    sink._record_path.unlink()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    with pytest.raises(ConnectorError, match=r"epochs, which says what is in reach.* is gone"):
        sink.commit(1, [stage(sink, some_rows(2, 2))])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


# A folder of epoch files.

def test_each_epoch_is_one_file_named_by_its_number(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach/")
    sink.commit(11, [stage(sink, some_rows(0, 2))])
    sink.commit(12, [stage(sink, some_rows(2, 1)), stage(sink, some_rows(3, 1))])
    sink.commit(13, [])
    assert visible_files(tmp_path / "reach") == ["epoch-00000011.jsonl", "epoch-00000012.jsonl"]
    assert json_rows((tmp_path / "reach/epoch-00000012.jsonl").read_text()) == some_rows(2, 2)


def test_a_crash_between_publishing_and_record_leaves_the_first_file(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach/")
    record = sink._record_path.read_bytes()
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    sink._record_path.write_bytes(record)
    sink.commit(0, [stage(sink, some_rows(90, 2))])
    assert json_rows((tmp_path / "reach/epoch-00000000.jsonl").read_text()) == some_rows(0, 2)


def test_an_epoch_file_taken_away_does_not_come_back(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach/")
    sink.commit(0, [stage(sink, some_rows(0, 2))])
    (tmp_path / "reach/epoch-00000000.jsonl").unlink()
    again = opened(tmp_path, "reach/", fresh=False)
    again.commit(0, [stage(again, some_rows(0, 2))])
    assert visible_files(tmp_path / "reach") == []


def test_parquet_keeps_types_and_reads_as_a_data_set(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.parquet")
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int32()), "tags": [["a"], None]})
    sink.commit(0, [sink.stage(iter([batch])), sink.stage(iter([batch]))])
    sink.commit(1, [sink.stage(iter([batch, batch]))])
    table = pq.read_table(tmp_path / "reach.parquet")
    assert table.schema == batch.schema
    assert table.to_pylist() == batch.to_pylist() * 4


def test_small_parquet_batches_share_a_row_group(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.parquet")
    sink.commit(0, [stage(sink, some_rows(0, 50), batch_rows=1)])
    assert pq.ParquetFile(tmp_path / "reach.parquet/epoch-00000000.parquet").num_row_groups == 1


# Who owns what is there.

@pytest.mark.parametrize("file", ["out/reach.jsonl", "out/reach.csv", "out/reach/", "out/reach.parquet"])
def test_a_fresh_run_clears_what_the_last_run_wrote(tmp_path: Path, file: str) -> None:
    for count in (3, 1):
        sink = opened(tmp_path, file)
        for epoch in range(count):
            sink.commit(epoch, [stage(sink, some_rows(epoch, 1))])
        sink.close()
    if sink.folder:
        assert len(visible_files(tmp_path / file)) == 1
    else:
        rows = csv_rows(tmp_path / file) if sink.format == "csv" else json_rows((tmp_path / file).read_text())
        assert rows == some_rows(0, 1)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(("file", "foreign"), [
    ("out/reach.jsonl", "out/reach.jsonl"), ("out/reach/", "out/reach/notes.txt")])
def test_someone_elses_data_is_refused(tmp_path: Path, file: str, foreign: str, fresh: bool) -> None:
    (tmp_path / foreign).parent.mkdir(parents=True)
    (tmp_path / foreign).write_text("precious")
    with pytest.raises(ConnectorError) as refusal:
        opened(tmp_path, file, fresh=fresh)
    assert str(refusal.value) == (f"{file} exists and was not written by this topology: move it away, "
                                  "choose another path, or set overwrite: true")
    assert (tmp_path / foreign).read_text() == "precious"


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/"])
def test_another_topologys_output_is_refused(tmp_path: Path, file: str) -> None:
    sink = opened(tmp_path, file)
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    with pytest.raises(ConnectorError, match="was not written by this topology"):
        opened(tmp_path, file, topology="other")


def test_overwrite_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "reach.jsonl").write_text("old\n")
    sink = opened(tmp_path, "reach.jsonl", overwrite=True)
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert json_rows((tmp_path / "reach.jsonl").read_text()) == some_rows(0, 1)


def test_overwrite_clears_only_files_of_its_format_from_a_folder(tmp_path: Path) -> None:
    for name in ("part-0.json", "part-1.jsonl", "topology.yaml", "other.csv", "inner/deep.jsonl"):
        (tmp_path / "reach" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reach" / name).write_text("old")
    opened(tmp_path, "reach/", overwrite=True)
    assert visible_files(tmp_path / "reach") == ["inner", "other.csv", "topology.yaml"]
    assert (tmp_path / "reach/inner/deep.jsonl").exists()


def test_a_fresh_run_leaves_files_that_are_not_epochs(tmp_path: Path) -> None:
    opened(tmp_path, "reach/")
    (tmp_path / "reach/notes.jsonl").write_text("mine")
    opened(tmp_path, "reach/")
    assert visible_files(tmp_path / "reach") == ["notes.jsonl"]


def test_an_empty_file_belongs_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "reach.jsonl").touch()
    sink = opened(tmp_path, "reach.jsonl")
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    assert json_rows((tmp_path / "reach.jsonl").read_text()) == some_rows(0, 1)


def test_a_folder_where_a_file_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "reach.jsonl").mkdir()
    with pytest.raises(ConnectorError, match=r"reach.jsonl is a folder: .*end it with '/'"):
        opened(tmp_path, "reach.jsonl", overwrite=True)


@pytest.mark.parametrize("file", ["reach.parquet", "reach"])
def test_a_file_where_a_folder_should_be_is_refused_or_overwritten(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("old")
    with pytest.raises(ConnectorError, match=f"{file} is a file, but .* one file per epoch: move it away"):
        opened(tmp_path, file)
    assert (tmp_path / file).read_text() == "old"
    opened(tmp_path, file, overwrite=True)
    assert (tmp_path / file).is_dir()


# Staging.

@pytest.mark.parametrize("file", ["reach.jsonl", "reach/"])
def test_a_fresh_run_removes_leftovers_of_its_own_sink_only(tmp_path: Path, file: str) -> None:
    mine, other = opened(tmp_path, file), opened(tmp_path, "other.jsonl", topology="other")
    stage(mine, some_rows(0, 1))
    kept = stage(other, some_rows(0, 1))
    opened(tmp_path, file)
    assert staged_files(tmp_path) == [Path(kept.detail["part"])]


def test_a_run_that_continues_removes_only_old_leftovers(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.jsonl")
    old, young = (Path(stage(sink, some_rows(0, 1)).detail["part"]) for _ in range(2))
    os.utime(old, (0, 0))
    opened(tmp_path, "reach.jsonl", fresh=False)
    assert staged_files(tmp_path) == [young]


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/", "reach.parquet"])
def test_a_replica_removes_what_its_killed_predecessor_has_staged_and_nothing_of_its_siblings(
    tmp_path: Path, file: str
) -> None:
    opened(tmp_path, file)
    killed, sibling, namesake = (opened(tmp_path, file, False, run=run).shared() for run in ("1", "2", "1-2"))
    for _ in range(2):
        stage(killed, some_rows(0, 2))
    staged = stage(sibling, some_rows(0, 1))
    of_others = {Path(each.detail["part"]) for each in (staged, stage(namesake, some_rows(0, 1)))}
    opened(tmp_path, file, False, run="1")
    assert set(staged_files(tmp_path)) == of_others
    sibling.commit(0, [staged])
    assert sibling.last_epoch() == 0


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/", "reach.parquet"])
def test_what_one_that_is_killed_in_a_commit_has_put_together_is_removed_too(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path, file)
    killed = opened(tmp_path, file, False, run="1").shared()
    parts = [stage(killed, some_rows(first, 1)) for first in (0, 1)]
    with monkeypatch.context() as patched:
        # Dead, it removes nothing; and it dies where the epoch is not done yet.
        patched.setattr(Path, "unlink", lambda *_, **__: None)
        patched.setattr("penstock.connectors.file_sink.FileSink._write_end", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            killed.commit(0, parts)
    assert len(staged_files(tmp_path)) > len(parts)
    opened(tmp_path, file, False, run="1")
    assert staged_files(tmp_path) == []


@pytest.mark.parametrize("file", ["reach/", "reach.parquet"])
@pytest.mark.parametrize("wakes", ["before it publishes", "before it asks again", "before it gives the name"])
def test_a_file_that_was_read_and_removed_is_not_put_back_by_one_that_was_frozen(
    tmp_path: Path, file: str, wakes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path, file)
    frozen, sibling = (opened(tmp_path, file, False, run=run).shared() for run in ("1", "2"))
    late = stage(frozen, some_rows(0, 1))
    publish, link = FileSink._publish, os.link
    done: list[str] = []

    def goes_on_meanwhile(sink: FileSink, where: str) -> None:
        if sink.run == "1" and where == wakes and not done:
            done.append(where)
            sibling.commit(0, [stage(sibling, some_rows(0, 1))])
            sibling.commit(1, [])
            (read,) = frozen.path.glob("epoch-*")
            read.unlink()

    def published(sink: FileSink, *args: Any) -> None:
        goes_on_meanwhile(sink, "before it publishes")
        publish(sink, *args)
        goes_on_meanwhile(sink, "before it asks again")

    def named(source: Path, target: Path) -> None:
        if target.name.startswith("epoch-"):
            goes_on_meanwhile(frozen, "before it gives the name")
        link(source, target)

    monkeypatch.setattr(FileSink, "_publish", published)
    monkeypatch.setattr("os.link", named)
    frozen.commit(0, [late])
    assert done == [wakes]
    assert list(frozen.path.glob("epoch-*")) == []
    assert list(frozen._agreed.iterdir()) == []
    assert frozen.last_epoch() == 1


def raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/"])
def test_replicas_are_refused_where_a_disk_has_no_hard_links(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    alone = opened(tmp_path, file)
    alone.shared().open(False)
    monkeypatch.setattr("os.link", link)
    alone.open(False)
    with pytest.raises(ConnectorError, match="on a disk without hard links"):
        alone.shared().open(False)
    assert staged_files(tmp_path) == []


def test_an_epoch_that_is_done_leaves_nothing_that_says_what_is_in_it(tmp_path: Path) -> None:
    opened(tmp_path, "reach.jsonl")
    killed = opened(tmp_path, "reach.jsonl", False, run="1").shared()
    killed.commit(0, [stage(killed, some_rows(0, 1))])
    # Killed after the epoch was done, before these were removed; the next one is being done by a sibling.
    done, begun = (killed._agreed / f"{epoch:012d}" for epoch in (0, 1))
    done.touch()
    begun.touch()
    opened(tmp_path, "reach.jsonl", False, run="1")
    assert list(killed._agreed.iterdir()) == [begun]


@pytest.mark.parametrize("file", ["reach.jsonl", "reach.csv", "reach/", "reach.parquet"])
def test_nothing_stays_in_the_staging_folder(tmp_path: Path, file: str) -> None:
    sink = opened(tmp_path, file)
    sink.commit(0, [stage(sink, some_rows(0, 1)), stage(sink, some_rows(1, 1)), stage(sink, [])])
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    sink.abort([stage(sink, some_rows(0, 1))])
    assert staged_files(tmp_path) == []


def test_a_task_that_fails_leaves_no_part(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.jsonl")

    def broken() -> Iterator[pa.RecordBatch]:
        yield batch_for(sink, some_rows(0, 1))
        raise ValueError("the task died")

    with pytest.raises(ValueError, match="the task died"):
        sink.stage(broken())
    assert staged_files(tmp_path) == []


@pytest.mark.parametrize("file", ["reach.jsonl", "reach.csv", "reach/", "reach.parquet"])
@pytest.mark.parametrize("tasks", [1, 2])
def test_staged_rows_that_are_gone_fail_the_epoch_whole(tmp_path: Path, file: str, tasks: int) -> None:
    sink = opened(tmp_path, file)
    sink.commit(0, [stage(sink, some_rows(0, 1))])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*[lvt]") if path.is_file()}
    staged = [stage(sink, some_rows(1, 1)) for _ in range(tasks)]
    Path(staged[-1].detail["part"]).unlink()
    with pytest.raises(ConnectorError, match=r"rows staged for epoch 1 are gone: .*must see the same folder"):
        sink.commit(1, staged)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*[lvt]") if path.is_file()} == before


@pytest.mark.parametrize("file", ["reach.jsonl", "reach/"])
def test_replicas_that_commit_at_once_write_each_epoch_once(tmp_path: Path, file: str) -> None:
    opened(tmp_path, file)
    replicas = [opened(tmp_path, file, fresh=False) for _ in range(3)]
    start = threading.Barrier(len(replicas))

    def run(replica: FileSink) -> None:
        start.wait(10)
        for epoch in range(20):
            replica.commit(epoch, [stage(replica, some_rows(epoch * 2 + task, 1)) for task in range(2)])

    threads = [threading.Thread(target=run, args=(replica,)) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    files = sorted(path for path in tmp_path.rglob("*.jsonl"))
    assert json_rows("".join(path.read_text() for path in files)) == some_rows(0, 40)


@pytest.mark.parametrize(("file", "held"), [("reach.jsonl", "reach.jsonl"), ("reach/", "reach")])
def test_a_commit_under_way_holds_the_others_off(tmp_path: Path, file: str, held: str) -> None:
    sink = opened(tmp_path, file)
    slow = tmp_path / "slow"
    os.mkfifo(slow)

    def commit() -> None:
        try:
            sink.commit(0, [stage(sink, some_rows(0, 1)), Staged(1, {"part": str(slow)})])
        finally:
            if slow.exists():
                os.close(os.open(slow, os.O_RDONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=commit)
    thread.start()
    with slow.open("wb") as writer:  # returns when the commit has begun to read
        target = os.open(tmp_path / held, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
        writer.write(b"{}\n")
    thread.join(60)
    fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(target)
    assert [path.read_text()[-3:] for path in tmp_path.rglob("*.jsonl")] == ["{}\n"]


# A world that says no.

@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A disk on which no file can become larger than `size`: the write fails half-way, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("file", ["reach.jsonl", "reach.csv"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_disk_that_fills_up_at_the_commit_tears_nothing(tmp_path: Path, file: str, tasks: int) -> None:
    sink = opened(tmp_path, file)
    sink.commit(0, [stage(sink, some_rows(0, 100))])
    whole = (tmp_path / file).read_bytes()
    staged = [stage(sink, some_rows(100 * task, 100)) for task in range(tasks)]
    room = len(whole) // 2 + len(whole) * (tasks - 1)
    with largest_file(len(whole) + room), pytest.raises(ConnectorError, match=f"no space left .* {file}"):
        sink.commit(1, staged)
    assert (tmp_path / file).read_bytes() == whole
    sink.commit(1, staged)
    assert (tmp_path / file).read_bytes().startswith(whole)
    assert len((tmp_path / file).read_text().splitlines()) == len(whole.splitlines()) + 100 * tasks


@pytest.mark.parametrize("file", ["reach", "reach.parquet"])
def test_a_disk_that_fills_up_while_parts_are_joined_shows_no_epoch(tmp_path: Path, file: str) -> None:
    sink = opened(tmp_path, file)
    staged = [stage(sink, some_rows(100 * task, 100)) for task in range(4)]
    limit = max(Path(part.detail["part"]).stat().st_size for part in staged) + 100
    with largest_file(limit), pytest.raises(ConnectorError, match=f"no space left to write {file}"):
        sink.commit(0, staged)
    assert visible_files(tmp_path / file) == []
    sink.commit(0, staged)
    assert [Path(name).stem for name in visible_files(tmp_path / file)] == ["epoch-00000000"]


@pytest.mark.parametrize("file", ["reach.jsonl", "reach.parquet"])
def test_a_disk_that_fills_up_while_staging_leaves_no_part(tmp_path: Path, file: str) -> None:
    sink = opened(tmp_path, file)
    with largest_file(1000), pytest.raises(ConnectorError, match=f"no space left to write {file}"):
        stage(sink, some_rows(0, 1000))
    assert staged_files(tmp_path) == []


def test_a_full_disk_is_told_in_plain_words() -> None:
    with pytest.raises(OSError) as full, Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"x")
    assert explain(full.value, Path("/data/reach.jsonl"), "reach.jsonl").startswith(
        "no space left to write reach.jsonl (No space left on device): free some space")


@pytest.mark.parametrize("file", ["taken/reach.jsonl", "taken/deep/reach.jsonl", "taken/reach/"])
def test_a_parent_that_is_a_file_is_named(tmp_path: Path, file: str) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ConnectorError, match=f"{tmp_path}/taken is a file, not a folder, so {file} "):
        opened(tmp_path, file)


@contextmanager
def without_root() -> Iterator[None]:
    """Permissions do not bind root: be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("file", ["reach.jsonl", "inner/reach.jsonl", "reach/", "reach.parquet"])
def test_a_folder_that_cannot_be_written_is_named(file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with without_root(), pytest.raises(
                ConnectorError, match=rf"{file} cannot be written \(Permission denied\): change its perm"):
            opened(Path(folder), file)
        Path(folder).chmod(0o755)
        assert list(Path(folder).iterdir()) == []


# Text straight from Arrow.

@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@settings(deadline=None)
@given(lines=st.lists(st.none() | st.text(max_size=8)), start=st.integers(0, 6), length=st.integers(0, 6))
def test_the_bytes_of_a_column_are_those_of_its_lines(
        kind: pa.DataType, lines: list[str | None], start: int, length: int) -> None:
    column = pa.array(lines, kind).slice(min(start, len(lines)), length)
    assert bytes(line_bytes(column)) == "".join(line or "" for line in column.to_pylist()).encode()


def test_what_lies_under_a_null_is_not_written() -> None:
    offsets = pa.array([0, 2, 8, 10], pa.int32()).buffers()[1]
    column = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"a\nsecretb\n"), pa.py_buffer(b"\x05"))
    assert column.to_pylist() == ["a\n", None, "b\n"]
    assert bytes(line_bytes(column)) == b"a\nb\n"


def test_a_null_line_is_not_a_row(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.jsonl")
    staged = sink.stage(iter([pa.RecordBatch.from_pydict({"line": ["{}\n", None, "[]\n"]}).slice(1)]))
    assert staged.rows == 1
    sink.commit(0, [staged])
    assert (tmp_path / "reach.jsonl").read_text() == "[]\n"


def test_staging_nothing_needs_no_file(tmp_path: Path) -> None:
    sink = opened(tmp_path, "reach.jsonl")
    assert sink.stage(iter([])) == Staged(0)
    assert staged_files(tmp_path) == []
