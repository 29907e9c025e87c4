"""What all commands share in how they speak: the two consoles, and how problems and failures look."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console
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
