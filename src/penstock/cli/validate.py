"""`penstock validate`: every problem at once, without starting Spark."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from penstock.cli.loading import File, Sets, checked
from penstock.cli.screen import err, out, show_problems


def validate(
    file: File = None,
    sets: Sets = None,
    as_json: Annotated[bool, typer.Option("--json", help="Problems as JSON lines.")] = False,
) -> None:
    """Check a topology and list every problem with its line, in under a second.

    Exit code 0: it can run (there may be warnings). 2: it is wrong.
    """
    topology, problems = checked(file, sets)
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        for problem in problems:
            sys.stdout.write(
                json.dumps(
                    {
                        "file": problem.where.file,
                        "line": problem.where.line,
                        "severity": problem.severity,
                        "message": problem.message,
                        "hint": problem.hint,
                    }
                )
                + "\n"
            )
    else:
        show_problems(problems)
    if errors:
        err.print(f"[bold]{_many(errors, 'error')}[/bold]")
        sys.exit(2)
    if topology is not None and not as_json:
        out.print(
            f"[green]ok[/green] {topology.name}: {_many(len(topology.sources), 'source')}, "
            f"{_many(len(topology.operators), 'operator')}, {_many(len(topology.sinks), 'sink')}"
        )


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
