"""`penstock epochs`: look at a topology's epoch log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from penstock.cli.loading import File, Sets, load
from penstock.cli.screen import out

if TYPE_CHECKING:
    from penstock.epochs.record import EpochRecord


def epochs(
    file: File = None,
    sets: Sets = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest epochs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    state: Annotated[
        Path | None, typer.Option(help="Where state is kept. By default .penstock/<topology> beside the file.")
    ] = None,
    coordinator: Annotated[
        str | None, typer.Option(metavar="URL", envvar="PENSTOCK_COORDINATOR", help="As for `penstock run`.")
    ] = None,
) -> None:
    """Show the agreed epochs: when each was cut, how many tuples it has, and whether it is committed.

    Works on a running topology and on a stopped one. Old epochs are forgotten once nobody can need them.
    """
    topology = load(file, sets, quiet=True)
    from penstock.coordination.opening import open_coordinator
    from penstock.epochs.log import EpochLog
    from penstock.runtime.state_folder import StateFolder

    folder = StateFolder.of(topology, state)
    if coordinator is None and not folder.path.is_dir():
        raise typer.Exit(_nothing_yet(topology.name))
    source = open_coordinator(folder.coordinator_for(topology, coordinator))
    try:
        log = EpochLog(source)
        records = [record for record in map(log.get, log.agreed()[-last:]) if record is not None]
    finally:
        source.close()
    if not records:
        raise typer.Exit(_nothing_yet(topology.name))
    committed = folder.furthest().committed().epoch
    if as_json:
        for record in records:
            typer.echo(json.dumps({**json.loads(record.to_json()), "committed": record.epoch <= committed}))
    else:
        out.print(_table(topology.name, records, committed))


def _nothing_yet(name: str) -> int:
    typer.echo(f"topology '{name}' has cut no epoch yet: start it with `penstock run`", err=True)
    return 1


def _table(name: str, records: list[EpochRecord], committed: int) -> Table:
    table = Table(title=f"epochs of {name}")
    for column in ("epoch", "cut at", "tuples", "waiting", "state"):
        table.add_column(column, justify="left" if column in ("cut at", "state") else "right")
    for record in records:
        tuples = ", ".join(f"{source} {number:,}" for source, number in record.tuples.items())
        cut = datetime.fromtimestamp(record.time_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        how = "committed" if record.epoch <= committed else "in flight"
        shed = "".join(f", {fraction:.0%} of {source} shed" for source, fraction in record.shed.items())
        again = "".join(f", {number:,} of {source} replayed" for source, number in record.replays.items())
        ended = ", the last" if record.last else ""
        table.add_row(str(record.epoch), cut, tuples, f"{record.backlog:,}", how + shed + again + ended)
    return table
