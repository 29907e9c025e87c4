"""`penstock init`: a small project that runs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.screen import fail, out

TEMPLATE = files("penstock.cli") / "template"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put it; a new or an empty folder.")],
) -> None:
    """Make a project with a topology, its own Python code, some data and a test."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(f"{folder} exists and is not an empty folder; choose another name", 2)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item in sorted(TEMPLATE.iterdir(), key=lambda each: each.name):
            name = item.name.removesuffix(".txt") if item.name.endswith(".py.txt") else item.name
            (folder / name).write_text(item.read_text(encoding="utf-8"), encoding="utf-8")
            out.print(f"  {folder / name}")
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}", 1)
    out.print(f"\nNow: [bold]cd {folder} && penstock test && penstock run[/bold]")
