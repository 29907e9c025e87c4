"""The whole proof: run undisturbed, run disturbed, compare, judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.chaos.replica_trial import ReplicaTrial
from penstock.chaos.report import Report
from penstock.chaos.schedule import Disturbance, Rescale, schedule
from penstock.chaos.small_disk import Disk, ordinary_disk, small_disk
from penstock.chaos.subject import Subject, comparable_sinks
from penstock.chaos.trial import Outcome, Trial, Ways
from penstock.chaos.verdict import Verdict, breaches, compare, row_text
from penstock.connectors.base import SinkConnector
from penstock.epochs.moments import PROCESSES
from penstock.errors import DeliveryError, MachineError, PenstockError
from penstock.topology.dead_letters import DEAD_LETTERS

LINE = "line"
"""The one column of rows that a sink of lines hands back."""

_SMALLEST_DISK = 64
"""Megabytes."""


@dataclass(frozen=True)
class Settings:
    """How hard a topology is tried."""

    kills: int = 5
    seed: int = 0
    deep: bool = False
    ignored: tuple[str, ...] = ()
    """Columns that two runs need not agree on, such as a time."""
    rescales: tuple[Rescale, ...] = ()
    """What is rescaled in the disturbed run, in this order."""
    gap_goal: bool = False
    """Whether a gap that people notice is a failure, too."""

    def ignored_in(self, sink: str) -> tuple[str, ...]:
        """A tuple that is replayed first may be buried in another epoch."""
        return (*self.ignored, "epoch") if sink == DEAD_LETTERS else self.ignored


def rehearse(
    subject: Subject,
    settings: Settings,
    ways: Ways,
    scratch: Path,
    begin: Callable[[str, int], None] = lambda phase, epochs: None,
) -> Report:
    """Do it all in the folder `scratch`; `begin` is told of each of the two runs, and how many epochs it has.

    Raises DeliveryError when the topology fails even undisturbed: then there is nothing to compare with.
    """
    if not PROCESSES.is_dir():
        raise MachineError(f"penstock chaos finds its victims in {PROCESSES}, which this system does not have; "
                           "run it on Linux or in a Linux container")  # fmt: skip
    begin("undisturbed", subject.epochs)
    undisturbed = ordinary_disk(scratch / "reference")
    reference = _trial(ways, undisturbed, scratch / "reference-logs", [])
    if not reference.ended:
        raise DeliveryError(f"the topology fails even undisturbed: {'; '.join(reference.troubles)}")
    sinks, left_out = comparable_sinks(subject.topology, undisturbed.folder / "out")
    expected = {name: read_rows(sink, settings.ignored_in(name)) for name, sink in sinks.items()}

    begin("disturbed", reference.epochs)
    replicas = subject.replicas.paced(reference.epochs, reference.first) if subject.replicas else None
    planned = schedule(settings.kills, settings.seed, reference.epochs, settings.deep, settings.rescales,
                       replicas.number if replicas else 1)  # fmt: skip
    with _disk(scratch / "disturbed", settings.deep, undisturbed.folder) as disk:
        logs = scratch / "disturbed-logs"
        if replicas:
            disturbed = ReplicaTrial(ways, disk.folder, logs, replicas).run(planned)
        else:
            disturbed = _trial(ways, disk, logs, planned)
        verdicts, unreadable = _verdicts(subject, settings, disk, expected) if disturbed.ended else ((), ())
    topology = subject.topology
    broken = (*breaches(topology.delivery, verdicts), *unreadable, *disturbed.troubles)
    return Report(
        topology.name,
        topology.delivery,
        settings.seed,
        subject.sets,
        subject.tuples,
        reference,
        disturbed,
        verdicts,
        left_out,
        broken,
        (*subject.notes, *disturbed.notes),
        settings.gap_goal,
    )


def read_rows(sink: SinkConnector, ignored: Collection[str] = ()) -> list[str]:
    """All rows of a sink as text, in order."""
    rows = (row for batch in sink.read_back() or () for row in batch.to_pylist())
    return [row_text(_columns(row) if ignored else row, ignored) for row in rows]


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """A row's columns, also where the sink hands it back as a line of JSON."""
    if row.keys() != {LINE}:
        return row
    try:
        parsed = json.loads(row[LINE])
    except ValueError:
        return row
    return parsed if isinstance(parsed, dict) else row


def _trial(ways: Ways, disk: Disk, logs: Path, planned: list[Disturbance]) -> Outcome:
    return Trial(ways, disk, logs).run(planned)


def _verdicts(
    subject: Subject, settings: Settings, disk: Disk, expected: dict[str, list[str]]
) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """The verdict for each sink, and what is wrong with those that cannot even be read."""
    sinks, _ = comparable_sinks(subject.topology, disk.folder / "out")
    verdicts, unreadable = [], []
    for name, sink in sinks.items():
        try:
            verdicts.append(compare(name, expected[name], read_rows(sink, settings.ignored_in(name))))
        except (PenstockError, OSError, ValueError) as error:
            unreadable.append(f"sink '{name}': what was delivered cannot be read: {error}")
    return tuple(verdicts), tuple(unreadable)


@contextmanager
def _disk(folder: Path, deep: bool, like: Path) -> Iterator[Disk]:
    """Where the disturbed run writes; with `deep` a disk with room for what the other run wrote, and some more."""
    if not deep:
        yield ordinary_disk(folder)
        return
    written = sum(file.stat().st_size for file in like.rglob("*") if file.is_file())
    with small_disk(folder, _SMALLEST_DISK + 4 * written // (1 << 20)) as disk:
        yield disk

