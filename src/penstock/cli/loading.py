"""Read and check the topology that a command is given."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.screen import fail, show_problems
from penstock.topology.loading import INHERITED_SETS, find_topology_file, load_topology
from penstock.topology.logged_tuples import with_logged_tuples
from penstock.topology.model import Topology
from penstock.topology.problems import Problem

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="A topology in YAML or Python, a DADSTORM .config, or a folder that holds one. "
        "By default topology.yaml here.",
        show_default=False,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the file, e.g. `delivery=at-least-once` "
                 "or `sources.tweets.file=other.csv`. May be repeated."),
]


def topology_path(file: Path | None) -> Path:
    """The file a command is about; exits when there is none."""
    if file is not None:
        return file
    found = find_topology_file(Path())
    if found is None:
        fail("no topology.yaml or topology.py here; name a file, or start with `penstock init demo`", 2)
    return found


def parse_sets(sets: Sequence[str] | None) -> dict[str, str]:
    """`key=value` pairs; exits on one without '='."""
    pairs = {}
    for item in (*_inherited_sets(), *(sets or ())):
        key, equals, value = item.partition("=")
        if not equals or not key:
            fail(f"--set {item}: write KEY=VALUE, for example --set epoch.max_tuples=1000", 2)
        pairs[key.strip()] = value
    return pairs


def _inherited_sets() -> list[str]:
    try:
        found = json.loads(os.environ.get(INHERITED_SETS) or "[]")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        fail(f'{INHERITED_SETS} in the environment is no JSON list such as ["epoch.max_tuples=1000"]', 2)
    return found


def checked(file: Path | None, sets: Sequence[str] | None) -> tuple[Topology | None, list[Problem]]:
    """The topology and all its problems, those of the file and those of the validation."""
    from penstock.connectors.registry import catalogue, misconfigured
    from penstock.validation import validate

    kinds = catalogue()
    topology, problems = load_topology(topology_path(file), kinds, parse_sets(sets))
    if topology is not None:
        problems = [*problems, *validate(topology, kinds)]
        told = {problem.where for problem in problems if problem.severity == "error"}
        problems += [problem for problem in misconfigured(topology) if problem.where not in told]
    return topology, sorted(problems, key=lambda problem: (problem.where.file, problem.where.line))


def load(file: Path | None, sets: Sequence[str] | None = None, quiet: bool = False) -> Topology:
    """A topology without errors; otherwise shows them all and exits with 2."""
    topology, problems = checked(file, sets)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or not quiet:
        show_problems(problems)
    if errors or topology is None:
        sys.exit(2)
    return with_logged_tuples(topology)
