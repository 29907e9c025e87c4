"""`penstock run` of a topology with replicas: all of them, watched, or one of them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.cli.display import Display, choose_display, how_it_ended
from penstock.cli.loading import topology_path
from penstock.cli.scripted import scripted
from penstock.cli.stopping import stopping_on_signals
from penstock.connectors.shown_rows import ShownRows
from penstock.control.priority import LAST, lower_session
from penstock.control.replica_process import end_with_owner, rise_without_supervisor
from penstock.control.share import Share
from penstock.control.supervisor import Supervisor
from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.replication.replica import Replica, ReplicaPlace
from penstock.replication.views import ReplicaView
from penstock.runtime.progress import Progress, Snapshot
from penstock.runtime.restore import RestoreSettings, look_at, put_in_place
from penstock.runtime.run import Outcome, RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.tally import tally
from penstock.spark.archive_maker import is_wanted, start_maker
from penstock.topology.model import Topology


def replica_command(file: Path | None, sets: Sequence[str] | None, given: Mapping[str, object]) -> list[str]:
    """The command that starts one replica as this one was started."""
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    changes = [part for item in sets or () for part in ("--set", item)]
    return [sys.executable, "-m", "penstock", "run", str(topology_path(file).absolute()), *changes, *options, "--json"]


def supervise(
    topology: Topology, settings: RunSettings, command: Sequence[str], as_json: bool, share: Share | None = None,
    progress_file: Path | None = None, begin_with: RestoreSettings | None = None,
) -> None:
    """Run all replicas, or a share of them, until the input ends, or until Ctrl-C.

    `begin_with` is the checkpoint with which the history of a share begins, if it does not begin with nothing.
    """
    home = StateFolder.of(topology, settings.state)
    plan = rewrite(build_plan(topology))
    address = home.coordinator_for(topology, settings.coordinator)
    with choose_display(topology, functools.partial(tally, plan), as_json, None, progress_file) as display:
        go_back = (None if begin_with is None
                   else functools.partial(_go_back, topology, begin_with, settings, display.say))  # fmt: skip
        supervisor = Supervisor(topology, ReplicaPlace(home), command, settings.coordinator, settings.scratch,
                                share=share, when_safe=_make_archive, go_back=go_back)  # fmt: skip
        reached = supervisor.start(settings.fresh, display.say)
        rows = ShownRows(topology, home.path)
        last = Progress().snapshot()

        def look(progress: dict[str, Any] | None, views: list[ReplicaView]) -> None:
            nonlocal last
            display.replicas(views)
            if progress is not None:
                last = Snapshot(**progress)
                display.look(last)
            rows.look(display.rows)

        with scripted(topology, address, functools.partial(log_in_time_order, rows, display)) as script:
            script.hold()
            if reached:
                display.say(f"going on after epoch {reached}")
            script.begin()
            with stopping_on_signals(supervisor.stop, display.say):
                ended = supervisor.watch(look)
            script.end()
        rows.look(display.rows, is_over=True)
        display.end(last, how_it_ended(Outcome(ended, last)))


def log_in_time_order(rows: ShownRows, display: Display, line: str) -> None:
    """Log a command after the tuples that were delivered before it."""
    rows.look(display.rows)
    display.log(line)


def _go_back(
    topology: Topology, to: RestoreSettings, settings: RunSettings, say: Callable[[str], None], lock: int
) -> None:
    """Put a checkpoint in the place of what is at home; who calls it holds that."""
    found = look_at(topology, to, settings)
    for note in found.notes:
        say(note)
    put_in_place(found, settings, lock, say)
    say(f"going back to epoch {found.manifest.epoch}, with {to.source}")


def _make_archive() -> None:
    """Of Spark's classes, where there is none: replicas that come later start in half the time."""
    if is_wanted():
        lower_session(start_maker().pid, LAST)


def run_one_replica(
    topology: Topology, settings: RunSettings, name: str, cell: str, as_json: bool, share: Share | None = None
) -> None:
    """Run one replica until the input ends, or until it is stopped."""
    end_with_owner()
    home = StateFolder.of(topology, settings.state)
    rise_without_supervisor(home)
    elsewhere = () if share is None else share.elsewhere(topology.name, home)
    replica = Replica(topology, name, ReplicaPlace(home, elsewhere), settings, cell)
    with choose_display(topology, functools.partial(tally, replica.run.plan), as_json, name) as display:
        replica.start(display.say)
        if replica.run.resumed_from:
            display.say(f"going on after epoch {replica.run.resumed_from}")
        with stopping_on_signals(replica.run.stop, display.say):
            outcome = replica.wait(display.look)
        display.end(outcome.progress, how_it_ended(outcome))
