"""What all commands share in how they speak: the two consoles, and how problems and failures look."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TextIO

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from penstock.topology.problems import Problem

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def tell(name: Literal["stdout", "stderr"], text: str) -> None:
    """Write something that a run can do without: a full disk under its log does not end it, and the line is lost."""
    stream: TextIO = getattr(sys, name)
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # What could not be written stays in the old one's buffer, and would be tried again with every line.
        setattr(sys, name, open(stream.fileno(), "w", encoding=stream.encoding, closefd=False))  # noqa: SIM115


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
