"""`penstock run`: run a topology to the end of its input, or until Ctrl-C."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.loading import File, Sets, load
from penstock.cli.orders import named_replicas
from penstock.cli.screen import fail
from penstock.cli.stopping import INTERRUPTED, stopping_on_signals
from penstock.topology.model import ANY_CELL, LOCAL


def run(
    file: File = None,
    sets: Sets = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where Spark runs: `local[4]`, `spark://host:7077`. "
                     "By default all cores of this machine."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Progress and rows as JSON lines.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew instead of going on from an interrupted run.")
    ] = False,
    state: Annotated[
        Path | None, typer.Option(help="Where to keep state. By default .penstock/<topology> beside the file.")
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "1g",
    coordinator: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="PENSTOCK_COORDINATOR",
                     help="Where the epoch log is kept, for example `zookeeper://host:2181/penstock`. "
                     "By default a file beside the other state."),
    ] = None,
    replica: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run only this replica of a topology with `replicas`, here and now; without "
                     "it all are started and watched."),
    ] = None,
    cell: Annotated[
        str, typer.Option(metavar="CELL", help="The failure domain of that replica: `local` or a Spark master.")
    ] = LOCAL,
    supervised: Annotated[
        bool,
        typer.Option("--supervised", help="Watch the run, and start it again when it fails. With `replicas`, always."),
    ] = False,
    share: Annotated[
        str | None, typer.Option(hidden=True, metavar="N,N@M", help="Look after these replicas only; other nodes have "
                                 "the rest. M: how often it was begun anew.")
    ] = None,
    nodes: Annotated[Path | None, typer.Option(hidden=True, help="Where all nodes keep what they have.")] = None,
    begin_with: Annotated[
        Path | None, typer.Option(hidden=True, metavar="DIR", help="With --share: the checkpoint with which that "
                                  "history begins; the first node that comes goes back to it.")
    ] = None,
    fresh_sinks: Annotated[
        bool, typer.Option("--fresh-sinks", hidden=True, help="With --begin-with: as for `penstock restore`.")
    ] = False,
    progress_file: Annotated[
        Path | None, typer.Option(hidden=True, help="With --json and --supervised: a file that tells progress at once, "
                                  "for a console.")
    ] = None,
    scratch: Annotated[Path | None, typer.Option(hidden=True, help="All sinks write into this folder instead.")] = None,
) -> None:
    """Run a topology to the end of bounded input, or until Ctrl-C.

    An interrupted run goes on where it stopped; a finished one starts anew.

    Exit code 0: done. 1: it ran and failed. 2: the topology is wrong.
    """
    topology = load(file, sets, quiet=as_json)
    named_replicas(topology, replica)
    from penstock.cli.display import choose_display, how_it_ended
    from penstock.cli.replicas import replica_command, run_one_replica, supervise
    from penstock.cli.scripted import scripted
    from penstock.control.share import Share
    from penstock.replication.sibling import go_on_without_replicas
    from penstock.runtime.restore import RestoreSettings
    from penstock.runtime.run import Run, RunSettings
    from penstock.runtime.tally import tally
    from penstock.spark.session import default_master

    clusters = [each for each in topology.cells if each not in (LOCAL, ANY_CELL)]
    if master is not None and clusters and topology.replicas > 1:
        fail(f"--master {master}: `cells` of topology '{topology.name}' say where each replica runs, and all would run "
             "there: leave it out, or write `cells: any`", 2)
    if cell == LOCAL and topology.replicas == 1 and clusters:
        cell = topology.cells[0]
    settings = RunSettings(
        master=master or (default_master() if cell == LOCAL else cell),
        state=state,
        fresh=fresh,
        memory=memory,
        coordinator=coordinator,
        scratch=scratch,
    )
    part = None if share is None else Share.parse(share, nodes)
    if replica is not None:
        run_one_replica(topology, settings, replica, cell, as_json, part)
        return
    if topology.replicas > 1 or supervised:
        given = {"--master": master, "--state": state, "--memory": memory, "--coordinator": coordinator,
                 "--scratch": scratch, "--share": share, "--nodes": nodes}
        back = None if begin_with is None else RestoreSettings(begin_with, fresh_sinks=fresh_sinks, held=True)
        supervise(topology, settings, replica_command(file, sets, given), as_json, part, progress_file, back)
        return
    running = Run(topology, settings)
    if running.state.replicas():
        go_on_without_replicas(running.state, topology.name, running.state.coordinator_for(topology, coordinator))
    address = running.state.coordinator_for(topology, coordinator)
    with (
        choose_display(topology, functools.partial(tally, running.plan), as_json) as display,
        scripted(topology, address, display.log) as script,
    ):
        try:
            running.start(say=display.say, show=display.rows, before_query=script.hold)
        except KeyboardInterrupt:
            fail("interrupted before it began; the same command starts again", INTERRUPTED)
        if running.resumed_from:
            display.say(f"going on after epoch {running.resumed_from}")
        script.begin()
        with stopping_on_signals(running.stop, display.say):
            outcome = running.wait(display.look)
        script.end()
        display.end(outcome.progress, how_it_ended(outcome))
