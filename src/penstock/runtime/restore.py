"""Go on from a snapshot: in its own place or in another, also with a topology that has changed since."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.registry import sink_connector
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.errors import CoordinationError, DeliveryError, TopologyError
from penstock.runtime import compatibility
from penstock.runtime.division import divide_anew
from penstock.runtime.instances import instances
from penstock.runtime.manifest import (
    CHECKPOINT,
    COMMITTED,
    EPOCHS,
    SHAPE,
    Look,
    Manifest,
    check_whole,
    read_manifest,
)
from penstock.runtime.moved_state import move_state
from penstock.runtime.run import Run, RunSettings
from penstock.runtime.sink_match import SinkMatch, match_sinks
from penstock.runtime.state_files import keep_newest, link_checkpoint
from penstock.runtime.state_folder import Committed, StateFolder, ToRestore
from penstock.runtime.state_match import StateMatch, match_state, misfits
from penstock.runtime.swap import swapped
from penstock.runtime.tool_session import tool_session
from penstock.topology.dead_letters import buries, dead_letter_sink
from penstock.topology.model import Delivery, Topology


@dataclass(frozen=True)
class RestoreSettings:
    """What to restore, and how."""

    source: Path
    """The folder of a backup, or of a named checkpoint."""
    instances: int | None = None
    """How many instances stateful operators have from now on; None: as the topology asks for since, or as many as in
    the snapshot."""
    replace: bool = False
    """Whether an interrupted run in the same place may be given up."""
    fresh_sinks: bool = False
    """Whether the sinks' output begins anew after the snapshot's epoch."""
    held: bool = False
    """Whether who restores holds the state folder already, and knows that nobody runs."""


@dataclass(frozen=True)
class Restoration:
    """A restore that was looked at and can be done; `notes` are what to tell before it is."""

    manifest: Manifest
    topology: Topology
    settings: RestoreSettings
    state: StateFolder
    match: StateMatch
    sinks: SinkMatch
    instances: int
    last_agreed: int = 0
    """The last epoch that the place's epoch log knows, if it is of the snapshot's history."""

    @property
    def notes(self) -> list[str]:
        divided = self.manifest.instances
        rescaled = [f"the state is divided over {self.instances} instances instead of {divided}"]
        return [*self.match.notes(), *self.sinks.notes, *(rescaled if self.needs_rescale else [])]

    @property
    def needs_rescale(self) -> bool:
        return self.instances != self.manifest.instances and bool(self.manifest.state_ids)

    @property
    def needs_spark(self) -> bool:
        return self.needs_rescale or not self.match.same_places


def look_at(
    topology: Topology, settings: RestoreSettings, run: RunSettings, look: Look = lambda done, whole: None
) -> Restoration:
    """Check everything that can be checked before anything is changed.

    Raises CoordinationError for a backup that is not whole or a place that is taken, TopologyError for a topology that
    the state does not fit, DeliveryError when sinks could not go on as promised.
    """
    manifest = read_manifest(settings.source)
    check_whole(settings.source, manifest, look)
    state = StateFolder.of(topology, run.state)
    old = json.loads((settings.source / SHAPE).read_text())
    divided = old | {"state partitions": manifest.instances}
    number = settings.instances or instances(topology, manifest.instances, divided)
    new = compatibility.shape_of(topology, number)
    wrong = misfits(old, new)
    if wrong:
        listed = "\n".join(f"  {each}" for each in wrong)
        raise TopologyError(f"topology '{topology.name}' cannot go on from {settings.source}:\n{listed}")
    if any(name not in manifest.state_ids for name in old["state ids"]):
        raise CoordinationError(f"what {settings.source} holds cannot be told apart by operator; take it again")
    if not settings.held:
        _refuse_taken_place(state, settings, manifest)
    _refuse_ended(settings.source, manifest)
    agreed = _agreed(state, topology, run, settings, manifest)
    sinks = match_sinks(manifest.epoch, _sink_epochs(topology), agreed, settings.fresh_sinks)
    if sinks.refused:
        listed = "\n".join(f"  {each}" for each in sinks.refused)
        raise DeliveryError(
            f"the sinks of '{topology.name}' cannot go on from epoch {manifest.epoch}:\n{listed}\n"
            "  with --fresh-sinks their output is removed and begins after that epoch; with --as NAME, and other "
            "places to write to, it goes on beside this one"
        )
    return Restoration(manifest, topology, settings, state, match_state(old, new), sinks, number,
                       max(agreed or (), default=0))  # fmt: skip


def restore(restoration: Restoration, run: RunSettings, say: Callable[[str], None] = lambda _: None) -> None:
    """Carry it out: all of it or, when anything fails or the process is killed, nothing."""
    with restoration.state.held() as lock:
        put_in_place(restoration, run, lock, say)


def put_in_place(restoration: Restoration, run: RunSettings, lock: int, say: Callable[[str], None]) -> None:
    """The same, for who holds the state folder; `lock` is what `held` gave."""
    state = restoration.state
    with swapped(state) as prepared:
        _place_checkpoint(restoration, prepared / CHECKPOINT, run, lock, say)
        shape = compatibility.shape_of(restoration.topology, restoration.instances)
        (prepared / "shape").write_text(json.dumps(shape))
        (prepared / "committed").write_text(json.dumps(asdict(_committed(restoration))))
        lines = (restoration.settings.source / EPOCHS).read_text().splitlines()
        left = ToRestore(restoration.sinks.begin, lines, restoration.sinks.forget)
        (prepared / "restored").write_text(json.dumps(asdict(left)))
    state.forget_replicas()


def _place_checkpoint(
    restoration: Restoration, target: Path, run: RunSettings, lock: int, say: Callable[[str], None]
) -> None:
    saved = restoration.settings.source / CHECKPOINT
    batch = restoration.manifest.batch
    read_at = restoration.state.checkpoint
    if not restoration.needs_spark:
        link_checkpoint(saved, batch, target, read_at)
        return
    with tool_session(restoration.topology.name, restoration.state, run, lock, say) as spark:
        if restoration.match.same_places:
            link_checkpoint(saved, batch, target, target)
        else:
            say("arranging the state for the changed topology")
            # In the state folder: what is laid out there is linked.
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".laid-out-") as scratch:
                beside = Run(restoration.topology, replace(run, state=Path(scratch), coordinator=None, metrics=False))
                beside.lay_out_state(spark, restoration.manifest.instances)
                move_state(saved, batch, restoration.match, beside.state.checkpoint, target, target)
        if restoration.needs_rescale:
            say(f"dividing the state over {restoration.instances} instances")
            divide_anew(spark, target, restoration.instances)
    keep_newest(target, read_at)


def _committed(restoration: Restoration) -> Committed:
    """How far the sinks are; what at-most-once has begun in this place is not begun again."""
    committed = Committed(**json.loads((restoration.settings.source / COMMITTED).read_text()))
    there = restoration.state.committed()
    if restoration.topology.delivery is not Delivery.AT_MOST_ONCE or restoration.sinks.forget:
        return committed
    # Of several replicas, one that is not here may have begun the last epoch.
    by_others = restoration.last_agreed if restoration.topology.replicas > 1 else 0
    return replace(committed, begun=max(committed.begun, there.begun, there.epoch, by_others))


def _refuse_taken_place(state: StateFolder, settings: RestoreSettings, manifest: Manifest) -> None:
    running = next((found for each in (state, *state.replicas().values()) if (found := each.running())), None)
    if running is not None:
        raise CoordinationError(
            f"this topology is running (process {running}), with its state in {state.path}; stop it first, or restore "
            "beside it with --as NAME"
        )
    there = state.furthest().committed()
    if there.epoch and not there.ended and not settings.replace:
        raise CoordinationError(
            f"{state.path} holds a run that has come to epoch {there.epoch}; with --replace it goes back to epoch "
            f"{manifest.epoch}, and with --as NAME that is done beside it"
        )


def _refuse_ended(source: Path, manifest: Manifest) -> None:
    if Committed(**json.loads((source / COMMITTED).read_text())).ended:
        raise CoordinationError(
            f"{source} is of a run that had come to the end of its input at epoch {manifest.epoch}: there is nothing "
            "to go on with"
        )


def _agreed(
    state: StateFolder, topology: Topology, run: RunSettings, settings: RestoreSettings, manifest: Manifest
) -> Sequence[int] | None:
    """The epochs after the snapshot's that the place's epoch log knows; None when it knows another history.

    An epoch that is done again must be the same epoch: only then do sinks that have it already find it done.
    """
    if run.coordinator is None and not state.path.is_dir():
        return ()
    coordinator = open_coordinator(state.coordinator_for(topology, run.coordinator))
    try:
        log = EpochLog(coordinator)
        numbers = log.agreed()
        if not numbers:
            return ()
        known = set(log.exported(manifest.epoch))
        saved = (settings.source / EPOCHS).read_text().splitlines()
        return [number for number in numbers if number > manifest.epoch] if saved and saved[-1] in known else None
    finally:
        coordinator.close()


def _sink_epochs(topology: Topology) -> dict[str, int | None]:
    """How far each sink is."""
    items = [*topology.sinks, *([dead_letter_sink(topology)] if buries(topology) else [])]
    found: dict[str, int | None] = {}
    for item in items:
        sink: SinkConnector = sink_connector(item, Place(topology.name, item.name, topology.folder.absolute()))
        try:
            found[item.name] = sink.last_epoch()
        finally:
            sink.close()
    return found
