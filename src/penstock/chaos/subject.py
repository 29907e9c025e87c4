"""A topology made ready for chaos: its input ends, it has epochs enough, and its output can be compared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.chaos.schedule import blows_with
from penstock.connectors.base import Place, SinkConnector, SourceConnector
from penstock.connectors.generator import GeneratorSource
from penstock.connectors.registry import sink_connector, source_connector
from penstock.errors import TopologyError
from penstock.topology.dead_letters import DEAD_LETTERS, buries, dead_letter_sink
from penstock.topology.model import FrozenOptions, Source, Topology
from penstock.topology.values import to_seconds

_TUPLES_PER_CUT = 1_000_000
_COUNTING_SECONDS = 60.0
"""A source that has not come to its end by then is taken to have none."""
_HARMLESS = ("console", "memory")
"""Kinds of sinks that leave nothing behind."""
_UNHURRIED = "1000000000000"
"""A rate at which every tuple is due at once."""


_STARTS_PER_RECOVERY = 5.2
"""A replica is replaced, catches up, and is abreast for four epochs, while its siblings are at work: that takes longer
than a start of its own."""
_LONGEST_START = 10.0
"""The very first start on a machine takes longer: it makes the archive of Spark's classes."""
_EPOCHS_PER_RECOVERY = 20
_SHORTEST_INTERVAL = 0.2


@dataclass(frozen=True)
class Replicas:
    """How many replicas there are, and how often they cut an epoch."""

    number: int
    interval: float

    @property
    def sets(self) -> tuple[str, ...]:
        return f"replicas={self.number}", "cells=any", f"epoch.interval={self.interval}"


@dataclass(frozen=True)
class Wanted:
    """Replicas, and what is done to them."""

    number: int
    blows: int
    interval: float | None
    """What the user sets."""

    def paced(self, epochs: int, start: float) -> Replicas:
        """The stream must last until all replicas are safe again after each blow; `start` is how long one takes."""
        lasting = _STARTS_PER_RECOVERY * min(start, _LONGEST_START) * (self.blows + 1)
        own = round(max(_SHORTEST_INTERVAL, lasting / max(epochs, 1)), 2)
        return Replicas(self.number, own if self.interval is None else self.interval)


@dataclass(frozen=True)
class Subject:
    """What both runs are given, and what is known of them beforehand."""

    topology: Topology
    sets: tuple[str, ...]
    """For `--set`: those of the harness, then the user's, which win."""
    tuples: int
    epochs: int
    replicas: Wanted | None = None
    """Of the disturbed run, where it has several."""
    notes: tuple[str, ...] = ()
    """What a user should know of how the topology was prepared."""


def prepare(topology: Topology, sets: Mapping[str, str], kills: int, replicas: int = 1) -> Subject:
    """Cut the input into enough epochs for `kills` kills; raises TopologyError for input without end.

    Both runs must cut the same epochs, because what a running count delivers depends on them. So the size of an
    epoch alone decides where it ends: intervals and rates are taken out.
    """
    tuples = {source.name: count_tuples(topology, source) for source in topology.sources}
    most = max(tuples.values(), default=0)
    blows = blows_with(kills)
    wanted = wanted_epochs(kills) if replicas == 1 else _EPOCHS_PER_RECOVERY * (blows + 1)
    own = {key: value for key, value in _own_sets(topology, most, wanted).items() if key not in sets}
    chosen = {**own, **sets}
    if replicas > 1:
        # What the user sets is the pace of the replicas; the undisturbed run need not be as slow.
        chosen["epoch.interval"] = "0"
    epochs = max(1, -(-most // int(own.get("epoch.max_tuples", topology.epoch_tuples))))
    notes = []
    if epochs <= kills:
        notes.append(f"the input of {most:,} tuples makes only {epochs} epochs; more tuples would test more")
    interval = to_seconds(sets["epoch.interval"]) if "epoch.interval" in sets else None
    return Subject(
        topology, tuple(f"{key}={value}" for key, value in chosen.items()), sum(tuples.values()), epochs,
        Wanted(replicas, blows, interval) if replicas > 1 else None, tuple(notes),
    )  # fmt: skip


def wanted_epochs(kills: int) -> int:
    """Enough that some epochs lie between two disturbances."""
    return 4 * kills + 10


def count_tuples(topology: Topology, source: Source) -> int:
    """How many tuples a source has until its end; raises TopologyError when it has none."""
    unpaced = replace(source, options=FrozenOptions({k: v for k, v in source.options.items() if k != "rate"}))
    connector = source_connector(unpaced, _place(topology, source.name))
    _refuse_without_end(source, connector)
    return _counted(source, connector)


def comparable_sinks(topology: Topology, folder: Path) -> tuple[dict[str, SinkConnector], tuple[str, ...]]:
    """The sinks as they write into `folder`, and the names of those whose rows cannot be read again.

    Raises TopologyError when there is nothing to compare, and when a sink would not write into the folder but where
    it always does.
    """
    found: dict[str, SinkConnector] = {}
    for item in topology.sinks:
        sink = sink_connector(item, _place(topology, item.name)).redirected(folder)
        if sink is None and item.kind not in _HARMLESS:
            raise TopologyError(
                f"{item.where}: sink '{item.name}' would write to its real place, because it has no method "
                "`redirected(folder)` that gives the same sink in a scratch folder; add one, or leave the sink out"
            )
        if sink is not None and type(sink).read_back is not SinkConnector.read_back:
            found[item.name] = sink
    left_out = tuple(item.name for item in topology.sinks if item.name not in found)
    if not found:
        raise TopologyError(
            f"topology '{topology.name}': no sink keeps rows that could be compared "
            f"({', '.join(f'{item.name}: {item.kind}' for item in topology.sinks)}); "
            "add one that does, for example `kept: {from: …, file: out/kept.jsonl}`"
        )
    if buries(topology):
        letters = sink_connector(dead_letter_sink(topology), _place(topology, DEAD_LETTERS)).redirected(folder)
        assert letters is not None
        found[DEAD_LETTERS] = letters
    return found, left_out


def _own_sets(topology: Topology, most: int, epochs: int) -> dict[str, str]:
    own = {"epoch.max_tuples": str(max(1, -(-most // epochs))), "epoch.interval": "0"}
    if topology.replicas > 1:
        own["replicas"] = "1"
    paced = [source.name for source in topology.sources if source.options.get("rate")]
    return own | {f"sources.{name}.rate": _UNHURRIED for name in paced}


def _place(topology: Topology, name: str) -> Place:
    return Place(topology.name, name, topology.folder.absolute())


def _refuse_without_end(source: Source, connector: SourceConnector) -> None:
    if source.kind == "file" and source.options.get("follow"):
        raise _endless(source, "it follows its files", f"--set sources.{source.name}.follow=false")
    if isinstance(connector, GeneratorSource) and connector.count is None:
        raise _endless(source, "it has no count", f"--set sources.{source.name}.count=10000")


def _counted(source: Source, connector: SourceConnector) -> int:
    began = time.monotonic()
    offset, tuples = connector.start(), 0
    while True:
        cut = connector.cut(offset, _TUPLES_PER_CUT)
        tuples += cut.tuples
        if cut.ended:
            return tuples
        if cut.end == offset:
            raise _endless(source, f"after {tuples:,} tuples it waits for more", "a copy of some of its input")
        if time.monotonic() - began > _COUNTING_SECONDS:
            raise _endless(source, f"{tuples:,} tuples were not all", "a smaller input")
        offset = cut.end


def _endless(source: Source, why: str, instead: str) -> TopologyError:
    return TopologyError(
        f"{source.where}: source '{source.name}' never ends: {why}; "
        f"two runs can only be compared when the input ends: try {instead}"
    )
