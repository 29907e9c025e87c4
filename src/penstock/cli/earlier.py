"""`--beside FILE`: what an earlier run of a benchmark gave with `--json` stands beside what is measured now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from penstock.cli.screen import fail

Read = TypeVar("Read")

BesideOption = Annotated[
    Path | None,
    typer.Option("--beside", metavar="FILE", exists=True, dir_okay=False,
                 help="What an earlier run gave with `--json`, for the same table: it need not all be measured at "
                 "once."),
]


def earlier(file: Path | None, read: Callable[[str], Read]) -> list[Read]:
    """What the lines of the file say; ends the command where one says something else."""
    found = []
    for number, line in enumerate([] if file is None else file.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                found.append(read(line))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                fail(f"--beside {file}:{number}: this is not a line that the same command wrote with --json ({error}): "
                     "take the line out, or measure anew", 2)
    return found
