"""The contract of every connector: a new source or sink is one file with one class.

A **source** is replayable: reading the same slice again gives the same tuples. A **sink** stages rows
on the executors and commits whole epochs on the driver. Neither knows of Spark. Connectors travel to
other processes by pickling, so they hold only plain settings; open files and connections inside the
methods that use them.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa

from penstock.topology.catalogue import Kind
from penstock.topology.model import Delivery
from penstock.topology.schema import Schema

Offset = dict[str, Any]
"""How far a source has been read: JSON of strings, integers, booleans and nested objects. No floats."""

ROW = "__row"
"""In SQL, the number of a row; see `SourceConnector.made_of_rows`."""

Encoding = Literal["columns", "json", "csv", "text"]

EVERY_GUARANTEE = frozenset(Delivery)


@dataclass(frozen=True)
class Place:
    """What a connector needs to know of where it runs."""

    topology: str
    name: str
    """The source's or sink's name."""
    folder: Path
    """Relative paths start here."""
    run: str = ""
    """Whose rows are staged: a replica's name. What one of this name has left behind when it was killed is of no use to
    anybody, while what others have staged may be about to be committed; empty where nobody knows."""

    def resolve(self, path: str) -> Path:
        """`path` as the user meant it: relative to the topology's folder."""
        return (self.folder / Path(path).expanduser()).absolute()


@dataclass(frozen=True)
class Cut:
    """How far the next epoch may go in one source."""

    end: Offset
    tuples: int
    """How many records lie between the start and `end`, malformed ones included."""
    ended: bool
    """True when there is nothing after `end` and never will be."""
    backlog: int = 0
    """Roughly how many more tuples are already waiting after `end`; shown as lag."""


@dataclass(frozen=True)
class Slice:
    """A part of an epoch that one task reads. `first` numbers its first tuple within the epoch."""

    first: int
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Malformed:
    """A record that could not be read: the raw text, what was wrong, and where it stands."""

    raw: str
    error: str
    position: str


@dataclass(frozen=True)
class Chunk:
    """Some tuples of a slice as one Arrow batch, and the malformed records met on the way."""

    rows: pa.RecordBatch
    malformed: tuple[Malformed, ...] = ()


class SourceConnector(abc.ABC):
    """A replayable input. `describe` is its entry in the catalogue."""

    describe: ClassVar[Kind]

    @classmethod
    @abc.abstractmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> SourceConnector:
        """Make the connector from what the user wrote; raises TopologyError for impossible options.

        `options` has the kind's argument under the kind's name, and only options that the catalogue
        knows, with its defaults filled in. No I/O here.
        """

    @abc.abstractmethod
    def schema(self) -> Schema:
        """The columns of its tuples. May look at the outside world; raises ConnectorError."""

    def only(self, columns: Sequence[str]) -> SourceConnector:
        """The same source, reading only these columns if that saves work; otherwise itself, unchanged.

        `columns` are some of `schema()`, at least one. Offsets, cuts and slices stay the same. Records are
        malformed only by what is read of them.
        """
        return self

    def made_of_rows(self) -> Mapping[str, str] | None:
        """For each column, in SQL, how it is made of the number of its row, `ROW`; None where tuples have to be read.

        Spark then makes the tuples by itself. A slice has the numbers from `begin` to `end`, not included.
        """
        return None

    @abc.abstractmethod
    def start(self) -> Offset:
        """The offset before the first tuple."""

    @abc.abstractmethod
    def cut(self, start: Offset, limit: int) -> Cut:
        """How far an epoch that begins at `start` can go, with at most `limit` tuples.

        Called on the driver, often: it must not block for new input. Returns `end == start` and no
        tuples when there is nothing new. Never moves backwards.
        """

    @abc.abstractmethod
    def slices(self, start: Offset, end: Offset, parallelism: int) -> list[Slice]:
        """Divide an epoch into at most about `parallelism` parts; the same division every time."""

    @abc.abstractmethod
    def read(self, part: Slice) -> Iterator[Chunk]:
        """The tuples of one slice, in order, as Arrow batches that fit `schema()`.

        Called on executors, maybe several times for the same slice: every call gives the same
        tuples. Malformed records are handed over beside the rows, never raised and never skipped.
        """


@dataclass(frozen=True)
class Staged:
    """What one task staged for one sink: how many rows, and where they are until the commit."""

    rows: int
    detail: Mapping[str, Any] = field(default_factory=dict)


class SinkConnector(abc.ABC):
    """An output that commits whole epochs.

    The life of a sink: `open` once on the driver; for every epoch `stage` in each task that has rows
    (on executors, in parallel, perhaps more than once if a task is retried), then `commit` once on the
    driver with what the successful tasks staged, in task order; `close` at the end.
    """

    describe: ClassVar[Kind]
    encoding: Encoding = "columns"
    """How rows reach `stage`: as their columns, or as one column `line` of text (with its newline)
    that Spark has encoded natively."""
    keeps: ClassVar[frozenset[Delivery]] = frozenset({Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE})
    """The guarantees it can keep. A sink of your own may add exactly-once (`keeps = EVERY_GUARANTEE`) when its
    `commit` recognises an epoch that it committed before, also after a crash in the middle of it."""

    @classmethod
    @abc.abstractmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> SinkConnector:
        """Make the connector from what the user wrote; raises TopologyError for impossible options."""

    def with_columns(self, names: Sequence[str]) -> SinkConnector:
        """The same sink, told which columns it will receive; called once before `stage`."""
        return self

    def shared(self) -> SinkConnector:
        """The same sink, told that replicas commit the same epochs to it at the same time: the first one wins."""
        return self

    def open(self, fresh: bool) -> None:
        """Get ready on the driver; `fresh` when no earlier epoch of this run exists.

        Raises ConnectorError when the place cannot be written to or holds someone else's data.
        """

    @abc.abstractmethod
    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """Put rows where `commit` finds them, invisible to readers until then. Runs on executors."""

    @abc.abstractmethod
    def commit(self, epoch: int, staged: list[Staged]) -> None:
        """Make an epoch's rows visible, once: a second commit of the same epoch changes nothing."""

    def abort(self, staged: list[Staged]) -> None:
        """Throw staged rows away."""

    def forget_staged(self, run: str) -> None:
        """Throw away what a run has staged that is gone for good; see `Place.run`."""

    def close(self) -> None:
        """Let go of whatever `open` took hold of."""

    def redirected(self, folder: Path) -> SinkConnector | None:
        """The same sink writing into the scratch folder `folder`; None when it cannot. For rehearsals."""
        return None

    def last_epoch(self) -> int | None:
        """The last epoch that this sink has committed, -1 when there is none; None when it cannot tell."""
        return None

    def read_back(self) -> Iterator[pa.RecordBatch] | None:
        """Everything committed so far, in order, so that two runs can be compared; None when it cannot be read."""
        return None
