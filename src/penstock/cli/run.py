"""`penstock run`: run a topology to the end of its input, or until Ctrl-C."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.loading import File, Sets, load
from penstock.cli.screen import fail
from penstock.cli.stopping import INTERRUPTED, stopping_on_signals


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
    scratch: Annotated[Path | None, typer.Option(hidden=True, help="All sinks write into this folder instead.")] = None,
) -> None:
    """Run a topology to the end of bounded input, or until Ctrl-C.

    An interrupted run goes on where it stopped; a finished one starts anew.

    Exit code 0: done. 1: it ran and failed. 2: the topology is wrong.
    """
    topology = load(file, sets, quiet=as_json)
    from penstock.cli.display import choose_display
    from penstock.runtime.run import Run, RunSettings
    from penstock.runtime.tally import tally
    from penstock.spark.session import default_master

    settings = RunSettings(
        master=master or default_master(),
        state=state,
        fresh=fresh,
        memory=memory,
        coordinator=coordinator,
        scratch=scratch,
    )
    running = Run(topology, settings)
    with choose_display(topology, functools.partial(tally, running.plan), as_json) as display:
        try:
            running.start(say=display.say, show=display.rows)
        except KeyboardInterrupt:
            fail("interrupted before it began; the same command starts again", INTERRUPTED)
        if running.resumed_from:
            display.say(f"going on after epoch {running.resumed_from}")
        with stopping_on_signals(running.stop, display.say):
            outcome = running.wait(display.look)
        seconds = outcome.progress.seconds
        epochs = outcome.progress.epoch
        after = f"after {epochs} epoch{'' if epochs == 1 else 's'}, {seconds:.1f} s"
        how = f"done {after}" if outcome.ended else f"stopped {after}; the same command goes on from here"
        if outcome.progress.lost:
            how += f"; {outcome.progress.lost} tuples of interrupted epochs were skipped, as at-most-once promises"
        display.end(outcome.progress, how)
