"""What all commands share in how they speak: the two consoles, and how problems and failures look."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from penstock.topology.problems import Problem

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong on standard error and exit."""
    first, _, rest = message.partition("\n")
    err.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=True)
    if rest:
        err.print(Text(rest), soft_wrap=True)
    sys.exit(code)


def show_problems(problems: Iterable[Problem]) -> None:
    """One problem a line, as `file:line: what (hint)`, errors in red and warnings in yellow."""
    for problem in problems:
        style = "bold red" if problem.severity == "error" else "yellow"
        err.print(Text.assemble((f"{problem.severity}: ", style), str(problem)), soft_wrap=True)


def show_listing(
    objects: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    title: str,
    columns: Mapping[str, JustifyMethod],
    rows: Iterable[Sequence[str]],
    nothing: str,
) -> None:
    """Things of one kind: a JSON object a line for programs, a table for people, or that there is nothing."""
    if as_json:
        for each in objects:
            sys.stdout.write(json.dumps(each) + "\n")
    elif not objects:
        sys.stderr.write(nothing + "\n")
    else:
        table = Table(title=title)
        for column, justify in columns.items():
            table.add_column(column, justify=justify)
        for row in rows:
            table.add_row(*row)
        out.print(table)
