"""The committer between a Spark that keeps its logs and sinks that are real; it dies wherever it can."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import Malformed, Place, SinkConnector, Staged
from penstock.connectors.file_sink import FileSink
from penstock.connectors.memory import MemorySink
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.errors import ConnectorError, CoordinationError
from penstock.runtime.committer import Committer
from penstock.runtime.progress import Progress
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.runtime.tuple_failures import TupleFailures
from penstock.runtime.work_share import WINDOW_SECONDS, WorkShare
from penstock.spark.epoch_job import StagedBySink
from penstock.spark.malformed import MalformedLedger
from penstock.topology.model import Delivery, FrozenOptions, Source, Topology

from ...waiting import PATIENCE_SECONDS
from .offset_log import write_commit, write_offsets

ROWS_OF_AN_EPOCH = 3
EPOCHS = 4
ALL_ROWS = list(range(ROWS_OF_AN_EPOCH * EPOCHS))


class Crash(BaseException):
    """The process is gone."""


@dataclass
class Fuse:
    """Ends the process at its step number `steps`; never when that is None."""

    steps: int | None = None
    passed: int = 0

    def burn(self) -> None:
        self.passed += 1
        if self.passed - 1 == self.steps:
            raise Crash


class CarelessSink(SinkConnector):
    """Appends to a file whatever it is told to commit, as a sink does that knows nothing of epochs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> CarelessSink:
        return cls(place.resolve(options["careless"]))

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        rows = [row["id"] for batch in batches for row in batch.to_pylist()]
        return Staged(len(rows), {"rows": rows})

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        with self.path.open("a") as file:
            file.writelines(f"{row}\n" for part in staged for row in part.detail["rows"])


SINKS = (FileSink, MemorySink, CarelessSink)


@dataclass
class Machine:
    """What outlives a process: a disk, and a coordinator. `live` is one process's life on it."""

    folder: Path
    delivery: Delivery
    sinks: tuple[str, ...]
    fuse: Fuse = field(default_factory=Fuse)
    coordinator: MemoryCoordinator = field(default_factory=MemoryCoordinator)
    progress: Progress = field(default_factory=Progress)
    lives: int = 0
    replica: str | None = None

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.folder / f"state{self.replica or ''}")

    def start(self) -> Committer:
        """A committer as `Run` makes it at every start."""
        self.state.path.mkdir(exist_ok=True)
        sinks = {name: self._sink(name) for name in self.sinks}
        letters = FileSink.configure(Place("t", "dead-letters", self.folder), {"file": "dead-letters.jsonl"})
        for sink in (*sinks.values(), letters):
            sink.open(fresh=self.lives == 0)
        self.lives += 1
        self.progress = Progress()
        log = EpochLog(self.coordinator)

        def run_epoch(batch: object, tuples: int) -> StagedBySink:
            self.fuse.burn()
            staged = [[_stage(sink, _record_in(batch))] for sink in sinks.values()]
            self.fuse.burn()
            return staged

        topology = Topology("t", self.delivery, sources=(Source("s", "generator", FrozenOptions()),))
        failures = TupleFailures(topology, self.state.path, log, {"s": {"row": 0}}, slices=1)
        return Committer(
            self.delivery, self.state, log, sinks, letters, self.progress, run_epoch, failures, self.replica)

    def live(self, until: int = EPOCHS) -> None:
        """One life: do again the micro-batch that was begun and not committed, then go on to epoch `until`."""
        committer = self.start()
        checkpoint = self.state.checkpoint
        batch = len(list((checkpoint / "commits").glob("*")))
        while batch < until:
            record = epoch_record(batch + 1)
            if not (checkpoint / "offsets" / str(batch)).exists():
                write_offsets(checkpoint, batch, record)
                self.fuse.burn()
            committer(record, batch)  # type: ignore[arg-type]
            self.fuse.burn()
            write_commit(checkpoint, batch)
            self.fuse.burn()
            batch += 1

    def rows(self, sink: str) -> list[int]:
        """What a reader of the sink sees."""
        if sink == "memory":
            return [row["id"] for row in MemorySink.rows(str(self.folder), sink)]
        path = self.folder / f"{sink}.jsonl"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def _sink(self, name: str) -> SinkConnector:
        if name == "careless":
            return CarelessSink(self.folder / "careless.jsonl")
        place = Place(str(self.folder), name, self.folder)
        if name == "memory":
            return MemorySink.configure(place, {})
        return FileSink.configure(place, {"file": f"{name}.jsonl"})


def epoch_record(epoch: int) -> EpochRecord:
    end = epoch * ROWS_OF_AN_EPOCH
    return EpochRecord(epoch, 1000 + epoch, {"s": {"row": end}}, {"s": ROWS_OF_AN_EPOCH}, last=epoch == EPOCHS)


def _record_in(batch: object) -> EpochRecord:
    assert isinstance(batch, EpochRecord)
    return batch


def _stage(sink: SinkConnector, record: EpochRecord) -> Staged:
    ids = rows_of(record.epoch)
    columns = {"id": ids} if sink.encoding == "columns" else {"line": [f"{number}\n" for number in ids]}
    return sink.stage(iter([pa.RecordBatch.from_pydict(columns)]))


def _between_burns(deed: Callable[..., None], fuse: Callable[[], Fuse]) -> Callable[..., None]:
    def burning(*arguments: Any) -> None:
        fuse().burn()
        deed(*arguments)
        fuse().burn()

    return burning


@dataclass(frozen=True)
class Disturbed:
    """What is left of two lives, the first of which ended at `step`."""

    step: int
    machine: Machine
    in_flight: int
    """The epoch that was begun and not committed at the crash; 0: none."""

    def rows(self) -> list[list[int]]:
        return [self.machine.rows(sink) for sink in self.machine.sinks]


def every_crash(folder: Path, delivery: Delivery, *sinks: str) -> Iterator[Disturbed]:
    """Die before and after every durable deed, start again and live to the end; until there is no such deed left."""
    for step in itertools.count():
        place = folder / f"step-{step}"
        place.mkdir()
        machine = Machine(place, delivery, sinks)
        with pytest.MonkeyPatch.context() as patch:
            for owner, deed in (*((kind, "commit") for kind in SINKS), (StateFolder, "record")):
                patch.setattr(owner, deed, _between_burns(getattr(owner, deed), lambda: machine.fuse))  # noqa: B023
            machine.fuse = Fuse(step)
            try:
                machine.live()
            except Crash:
                begun, done = (len(list((machine.state.checkpoint / log).glob("*"))) for log in ("offsets", "commits"))
                machine.fuse = Fuse()
                machine.live()
                yield Disturbed(step, machine, begun if begun > done else 0)
            else:
                # Four deeds of the sinks and the record, six steps of Spark's, for each epoch: at least.
                assert step > EPOCHS * 8
                return


def test_exactly_once_every_row_is_there_once_wherever_it_crashed(tmp_path: Path) -> None:
    for life in every_crash(tmp_path, Delivery.EXACTLY_ONCE, "file", "memory"):
        assert life.rows() == [ALL_ROWS, ALL_ROWS], life.step
        assert life.machine.state.committed() == Committed(EPOCHS, ended=True)


def test_at_least_once_nothing_is_lost_and_only_the_epoch_in_flight_is_repeated(tmp_path: Path) -> None:
    repeated = 0
    for life in every_crash(tmp_path, Delivery.AT_LEAST_ONCE, "careless", "file"):
        careless, file = life.rows()
        assert file == ALL_ROWS, life.step
        assert sorted(set(careless)) == ALL_ROWS, life.step
        twice = [row for row in ALL_ROWS if careless.count(row) > 1]
        assert twice in ([], rows_of(life.in_flight)), life.step
        repeated += len(twice)
    # A sink that ignores the epoch gives the guarantee away that others keep.
    assert repeated


@pytest.fixture
def siblings(tmp_path: Path) -> tuple[Machine, Machine]:
    """Two replicas that write to the same sinks, one of which knows nothing of epochs."""
    first = Machine(tmp_path, Delivery.AT_LEAST_ONCE, ("careless", "file"), replica="1")
    # The sinks are not begun anew by the second.
    return first, replace(first, replica="2", lives=1)


def test_at_most_once_no_sibling_tries_what_one_has_died_over(
    siblings: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, sibling = (replace(machine, delivery=Delivery.AT_MOST_ONCE) for machine in siblings)
    for machine in (killed, sibling):
        machine.live(until=1)
    with monkeypatch.context() as patch:
        patch.setattr(EpochLog, "delivered", lambda *_: Fuse(0).burn())
        with pytest.raises(Crash):
            killed.live(until=2)
    sibling.live()
    killed.live()
    assert [killed.rows(sink) for sink in killed.sinks] == [ALL_ROWS, ALL_ROWS]
    # What a sibling has delivered meanwhile is not lost; of the second epoch nobody has said that it was.
    assert killed.state.committed().lost_epochs == 1


def test_at_most_once_a_coordinator_that_is_away_for_a_moment_is_waited_for(
    siblings: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = replace(siblings[0], delivery=Delivery.AT_MOST_ONCE)
    real, asked = EpochLog.begins, []

    def begins(log: EpochLog, epoch: int, who: str) -> bool:
        asked.append(epoch)
        if len(asked) < 3:
            raise CoordinationError("nobody answers")
        return real(log, epoch, who)

    monkeypatch.setattr(EpochLog, "begins", begins)
    machine.live()
    assert machine.rows("careless") == ALL_ROWS
    assert machine.state.committed().lost_epochs == 0


def test_at_most_once_two_that_deliver_at_the_same_moment_deliver_once(
    siblings: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [replace(machine, delivery=Delivery.AT_MOST_ONCE) for machine in siblings]
    both[0].live(until=0)
    meeting = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def nobody_yet(log: EpochLog, epoch: int) -> None:
        meeting.wait()

    monkeypatch.setattr(EpochLog, "delivered_by", nobody_yet)
    threads = [threading.Thread(target=machine.live) for machine in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [both[0].rows(sink) for sink in both[0].sinks] == [ALL_ROWS, ALL_ROWS]


@pytest.mark.parametrize("turns", ["12", "21", "1", "1221"])
def test_at_least_once_an_epoch_that_a_replica_has_delivered_is_left_out_by_its_siblings(
    siblings: tuple[Machine, Machine], turns: str
) -> None:
    siblings[0].live(until=0)
    for epoch, first in enumerate(itertools.islice(itertools.cycle(turns), EPOCHS), start=1):
        for machine in sorted(siblings, key=lambda machine: machine.replica != first):
            machine.live(until=epoch)
    for machine in siblings:
        assert machine.state.committed() == Committed(EPOCHS, ended=True)
    assert [siblings[0].rows(sink) for sink in siblings[0].sinks] == [ALL_ROWS, ALL_ROWS]


def test_at_least_once_only_the_epoch_is_repeated_that_a_replica_died_over(
    siblings: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, sibling = siblings
    for machine in siblings:
        machine.live(until=1)
    with monkeypatch.context() as patch:
        # It has written to the sinks, and could not tell its siblings any more.
        patch.setattr(EpochLog, "delivered", lambda *_: Fuse(0).burn())
        with pytest.raises(Crash):
            killed.live(until=2)
    sibling.live(until=3)
    killed.live()
    sibling.live()
    careless, file = (killed.rows(sink) for sink in killed.sinks)
    assert careless == [*rows_of(1), *rows_of(2), *rows_of(2), *rows_of(3), *rows_of(4)]
    # A sink that knows its epochs has it once also then.
    assert file == ALL_ROWS


def test_at_most_once_nothing_is_repeated_and_what_is_missing_is_counted(tmp_path: Path) -> None:
    losses = set()
    for life in every_crash(tmp_path, Delivery.AT_MOST_ONCE, "careless", "file"):
        committed = life.machine.state.committed()
        for rows in life.rows():
            missing = [row for row in ALL_ROWS if row not in rows]
            assert sorted(rows + missing) == ALL_ROWS, life.step
            assert missing in ([], rows_of(life.in_flight)), life.step
            assert not missing or committed.lost_tuples == ROWS_OF_AN_EPOCH, life.step
        assert (committed.lost_epochs, committed.lost_tuples) in ((0, 0), (1, ROWS_OF_AN_EPOCH)), life.step
        assert committed.lost_epochs == 0 or life.in_flight, life.step
        assert life.machine.progress.snapshot().lost == committed.lost_tuples
        losses.add(committed.lost_tuples)
    assert losses == {0, ROWS_OF_AN_EPOCH}


def test_at_most_once_a_second_crash_counts_the_same_loss_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.AT_MOST_ONCE, ("careless",))
    machine.live(until=1)
    write_offsets(machine.state.checkpoint, 1, epoch_record(2))
    for _ in range(2):
        # It skips the epoch, and dies before Spark has heard of it.
        machine.start()(epoch_record(2), 1)  # type: ignore[arg-type]
        assert machine.state.committed() == Committed(2, begun=1, lost_epochs=1, lost_tuples=ROWS_OF_AN_EPOCH)
    machine.live()
    assert machine.rows("careless") == [*rows_of(1), *rows_of(3), *rows_of(4)]
    assert machine.state.committed().lost_tuples == ROWS_OF_AN_EPOCH


def test_at_most_once_an_epoch_that_was_begun_is_skipped_though_spark_has_forgotten_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.AT_MOST_ONCE, ("careless",))
    machine.live(until=1)
    machine.state.record(Committed(1, begun=2))
    machine.live()
    assert machine.rows("careless") == [*rows_of(1), *rows_of(3), *rows_of(4)]
    assert machine.state.committed().lost_epochs == 1


@pytest.mark.parametrize("delivery", list(Delivery))
def test_a_stop_and_a_start_cost_nothing(tmp_path: Path, delivery: Delivery) -> None:
    machine = Machine(tmp_path, delivery, ("careless", "file"))
    for until in (2, 2, 3, EPOCHS):
        machine.live(until)
    assert [machine.rows(sink) for sink in machine.sinks] == [ALL_ROWS, ALL_ROWS]
    assert machine.state.committed().lost_tuples == 0


def test_a_loss_of_an_earlier_life_is_still_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.AT_MOST_ONCE, ("file",))
    machine.state.path.mkdir()
    machine.state.record(Committed(2, begun=2, lost_epochs=1, lost_tuples=50))
    machine.start()
    assert machine.progress.snapshot().lost == 50


def test_the_offset_log_says_which_epoch_a_micro_batch_is(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    write_offsets(machine.state.checkpoint, 7, epoch_record(1))
    committer(epoch_record(1), 7)  # type: ignore[arg-type]
    assert machine.state.committed().epoch == 1
    assert committer.finished_batch is None
    write_offsets(machine.state.checkpoint, 9, epoch_record(EPOCHS))
    committer(epoch_record(EPOCHS), 9)  # type: ignore[arg-type]
    assert committer.finished_batch == 9


def test_rows_of_an_epoch_that_is_done_do_not_stay_in_staging(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    machine.live(until=2)
    machine.start()(epoch_record(2), 1)  # type: ignore[arg-type]
    assert machine.rows("file") == [*rows_of(1), *rows_of(2)]
    assert [path for path in tmp_path.rglob(".penstock-staging/*/*") if path.is_file()] == []


def test_progress_counts_what_was_read_and_delivered(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file", "memory"))
    machine.live(until=2)
    seen = machine.progress.snapshot()
    assert (seen.epoch, seen.tuples, seen.delivered) == (2, {"s": 6}, {"file": 6, "memory": 6})


def test_progress_says_how_much_of_the_time_it_is_at_work_which_it_is_not_while_frozen(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    now = 100.0
    machine.progress.work = WorkShare(lambda: now)
    run_epoch = committer.run_epoch

    def slowly(batch: Any, tuples: int) -> StagedBySink:
        nonlocal now
        now += 4.0
        return run_epoch(batch, tuples)

    committer.run_epoch = slowly
    write_offsets(machine.state.checkpoint, 0, epoch_record(1))
    now += 100.0
    machine.progress.work.was_held()
    committer(epoch_record(1), 0)  # type: ignore[arg-type]
    # It was cut long before, and could not begin.
    assert machine.progress.snapshot().at_work == 4.0 / WINDOW_SECONDS
    now += 1.0
    write_offsets(machine.state.checkpoint, 1, epoch_record(2))
    committer(epoch_record(2), 1)  # type: ignore[arg-type]
    # It was cut before the first was done, and waited for that.
    assert machine.progress.snapshot().at_work == 9.0 / WINDOW_SECONDS


def test_a_failing_sink_is_remembered_and_the_epoch_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file", "memory"))
    committer = machine.start()
    write_offsets(machine.state.checkpoint, 0, epoch_record(1))
    with monkeypatch.context() as patch:
        patch.setattr(MemorySink, "commit", _refuse)
        with pytest.raises(ConnectorError, match="no room"):
            committer(epoch_record(1), 0)  # type: ignore[arg-type]
    assert isinstance(committer.failure, ConnectorError)
    assert machine.state.committed() == Committed()
    machine.live()
    assert [machine.rows(sink) for sink in machine.sinks] == [ALL_ROWS, ALL_ROWS]


def test_dead_letters_are_written_once_with_their_epoch(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    ledger = MalformedLedger(machine.state.path, Source("s", "file", FrozenOptions(), on_malformed="dead-letter"))
    ledger.note((Malformed("{bad", "no JSON", "a.jsonl:3"),))
    ledger.close(1, 0)
    write_offsets(machine.state.checkpoint, 0, epoch_record(1))
    for _ in range(2):
        committer(epoch_record(1), 0)  # type: ignore[arg-type]
        machine.state.record(Committed())
        committer = machine.start()
    letters = [json.loads(line) for line in (tmp_path / "dead-letters.jsonl").read_text().splitlines()]
    assert [(letter["epoch"], letter["source"], letter["raw"]) for letter in letters] == [(1, "s", "{bad")]


def test_now_and_then_the_log_is_told_and_old_records_go(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("memory",))
    log = EpochLog(machine.coordinator)
    for epoch in range(1, 142):
        log.propose(epoch_record(epoch))
    committer = machine.start()
    for epoch in (139, 140):
        write_offsets(machine.state.checkpoint, epoch, epoch_record(epoch))
        committer(epoch_record(epoch), epoch)  # type: ignore[arg-type]
        assert log.progress() == ({} if epoch == 139 else {"0": 140})
    assert log.agreed() == list(range(41, 142))


def test_a_coordinator_that_is_away_stops_no_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise CoordinationError("gone for a while")

    monkeypatch.setattr(MemoryCoordinator, "put", away)
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    write_offsets(machine.state.checkpoint, 0, epoch_record(20))
    committer(epoch_record(20), 0)  # type: ignore[arg-type]
    assert machine.state.committed().epoch == 20


def _refuse(*_: object) -> None:
    raise ConnectorError("no room")


def rows_of(epoch: int) -> list[int]:
    return list(range((epoch - 1) * ROWS_OF_AN_EPOCH, epoch * ROWS_OF_AN_EPOCH)) if epoch else []


def test_who_has_retired_begins_no_further_epoch(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    for batch in (0, 1):
        write_offsets(machine.state.checkpoint, batch, epoch_record(batch + 1))
    committer(epoch_record(1), 0)  # type: ignore[arg-type]
    committer.retire()
    with pytest.raises(CoordinationError, match="left to the next one"):
        committer(epoch_record(2), 1)  # type: ignore[arg-type]
    assert machine.rows("file") == rows_of(1)
    assert machine.state.committed().epoch == 1


def test_retiring_waits_for_the_epoch_in_flight(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Delivery.EXACTLY_ONCE, ("file",))
    committer = machine.start()
    write_offsets(machine.state.checkpoint, 0, epoch_record(1))
    begun, may_end, retired = (threading.Event() for _ in range(3))
    run_epoch = committer.run_epoch

    def slowly(batch: Any, tuples: int) -> StagedBySink:
        begun.set()
        assert may_end.wait(PATIENCE_SECONDS)
        return run_epoch(batch, tuples)

    committer.run_epoch = slowly
    at_work = threading.Thread(target=committer, args=(epoch_record(1), 0))
    retiring = threading.Thread(target=lambda: (committer.retire(), retired.set()))
    at_work.start()
    assert begun.wait(PATIENCE_SECONDS)
    retiring.start()
    assert not retired.wait(0.05)
    may_end.set()
    assert retired.wait(PATIENCE_SECONDS)
    assert machine.state.committed().epoch == 1
    at_work.join()
