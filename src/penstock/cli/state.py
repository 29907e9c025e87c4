"""`penstock state`: look at what a topology remembers."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import JustifyMethod
from rich.table import Table

from penstock.cli.busy import busy, megabytes
from penstock.cli.console_options import (
    AtOption,
    AuthorityOption,
    TokenOption,
    at_console,
    check_shown,
    client,
    meant_as_name,
)
from penstock.cli.loading import Sets, load
from penstock.cli.screen import fail, out, show_listing
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies, settled_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.runtime.state_view import ReadState


def state(
    file: Topologies,
    operator: Annotated[
        str | None, typer.Argument(metavar="[OPERATOR]", help="Whose keys and values to show.", show_default=False)
    ] = None,
    sets: Sets = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Only keys with this value; VALUE alone where the key has one "
                     "column. May be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many keys to show.")] = 20,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write all keys and values to a Parquet file instead.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "1g",
    place: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Show what a topology remembers: for every stateful operator its size and version, or the keys of one.

    Works on a running topology, which does not notice, and on a stopped one. Keys and values are read by Spark, which
    takes some seconds to start.
    """
    if operator is None and (key or export is not None):
        fail("name the operator: penstock state FILE OPERATOR", 2)
    if (known := at_console(file)) is not None:
        _at_console(known, operator, key or [], limit, as_json, at, token, authority)
        return
    topology = load(file, sets, quiet=True)
    from penstock.runtime.run import RunSettings
    from penstock.runtime.state_view import opened_state, overview, stateful_operator

    folder = settled_state(topology, place)
    if operator is None:
        address = folder.coordinator_for(topology, coordinator)
        _show_overview(topology.name, [asdict(each) for each in overview(topology, folder, address)], as_json)
        return
    stateful_operator(topology, operator)
    settings = RunSettings(state=place, memory=memory)
    with busy("reading") as at_work, opened_state(topology, operator, coordinator, settings, at_work.say) as found:
        rows = _chosen(found, key or [])
        if export is not None:
            written = _export(rows, export)
            said = f"{written:,} keys of '{operator}' after epoch {found.epoch} are in {export}"
        else:
            number = rows.count()
            ordered = rows.orderBy(*(f"`{name}`" for name in found.keys)) if found.keys else rows
            shown = [row.asDict() for row in ordered.limit(limit).collect()]
    if export is not None:
        typer.echo(said)
    elif as_json:
        for row in shown:
            typer.echo(json.dumps(row, ensure_ascii=False, default=str))
    else:
        _show_rows(found, shown, number)


def _chosen(found: ReadState, wanted: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    rows = found.rows
    for item in wanted:
        name, equals, value = item.partition("=")
        if not equals and len(found.keys) == 1:
            name, value = found.keys[0], item
        if name not in found.keys:
            columns = ", ".join(found.keys) or "none: it has one for all tuples"
            fail(f"--key {item}: the columns of the key are {columns}", 2)
        rows = rows.where(F.col(f"`{name}`").cast("string") == value)
    return rows


def _export(rows: DataFrame, target: Path) -> int:
    """One file, however many parts the state has; the number of rows."""
    import pyarrow.parquet as pq

    from penstock.connectors.staged_files import join_parquet

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        rows.write.mode("overwrite").parquet(folder)
        whole = Path(folder, "whole")
        join_parquet(whole, sorted(Path(folder).glob("*.parquet")), 0)
        whole.replace(target)
    return int(pq.read_metadata(target).num_rows)


def _at_console(name: str, operator: str | None, keys: list[str], limit: int, as_json: bool, at: str | None,
                token: str | None, authority: Path | None) -> None:  # fmt: skip
    check_shown("--limit", limit)
    with busy("reading"), meant_as_name(name):
        console = client(at, token, authority)
        found = console.get(f"/api/topologies/{name}/state", operator=operator, key=keys, limit=limit)
    if operator is None:
        _show_overview(name, found, as_json)
        return
    columns: dict[str, JustifyMethod] = dict.fromkeys(found[0] if found else (), "left")
    show_listing(found, as_json, title=f"{operator} of {name}", columns=columns,
                 rows=(["" if value is None else str(value) for value in row.values()] for row in found),
                 nothing=f"'{operator}' of '{name}' remembers nothing")  # fmt: skip


def _show_overview(topology: str, found: list[dict[str, Any]], as_json: bool) -> None:
    def size(each: dict[str, Any]) -> str:
        return megabytes(each["bytes"]) + (f" in {each['copies']} copies" if each["copies"] > 1 else "")

    show_listing(
        found, as_json,
        title=f"state of {topology} after epoch {found[0]['epoch'] if found else 0}",
        columns={"operator": "left", "kind": "left", "instances": "right", "size": "right", "version": "right"},
        rows=([each["operator"], each["kind"], str(each["instances"]), size(each), str(each["version"])]
              for each in found),
        nothing=f"topology '{topology}' has no stateful operators: it remembers nothing but its epochs")


def _show_rows(found: ReadState, shown: list[dict[str, Any]], number: int) -> None:
    table = Table()
    columns = list(shown[0]) if shown else list(found.rows.columns)
    for column in columns:
        table.add_column(column, justify="left" if column in found.keys else "right")
    for row in shown:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    out.print(table)
    keys = "1 key" if number == 1 else f"{number:,} keys"
    some = f", of which {len(shown)} are shown" if len(shown) < number else ""
    typer.echo(f"{keys} of '{found.operator}' after epoch {found.epoch}{some}")
