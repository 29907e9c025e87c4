"""`penstock kinds`: what can be written in a topology."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.screen import fail, out
from penstock.topology.catalogue import Kind, Option


def list_kinds(
    name: Annotated[str | None, typer.Argument(help="Show only this kind, with all its options.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the sources, operators and sinks with their options."""
    from penstock.connectors.registry import catalogue

    kinds = [kind for kind in catalogue().kinds if name is None or kind.name == name]
    if not kinds:
        known = ", ".join(sorted({kind.name for kind in catalogue().kinds}))
        fail(f"no kind '{name}'; there are {known}", 2)
    if as_json:
        json.dump([asdict(kind) for kind in kinds], sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
        return
    for role in ("source", "operator", "sink"):
        for kind in (kind for kind in kinds if kind.role == role):
            _show(kind)


def _show(kind: Kind) -> None:
    out.print(Text.assemble((kind.name, "bold cyan"), (f"  {kind.role}", "dim"), f"  {kind.doc}"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    options = [*((kind.argument,) if kind.argument else ()), *kind.options]
    for option in options:
        label = f"    {kind.name}: …" if option is kind.argument else f"    {option.name}"
        table.add_row(label, _type(option), Text(option.doc + _default(option)))
    out.print(table)
    out.print()


def _type(option: Option) -> str:
    return " | ".join(option.choices) if option.choices else option.type


def _default(option: Option) -> str:
    if option.required:
        return " Required."
    return "" if option.default in (None, (), {}, "") else f" Default: {option.default}."
