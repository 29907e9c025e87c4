"""`penstock test`: run the cases that a topology file holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from penstock.cli.loading import File, Sets, load, topology_path
from penstock.cli.screen import err, fail, out
from penstock.topology.model import Case, Topology

if TYPE_CHECKING:
    from penstock.testing import Result


def test(
    file: File = None,
    sets: Sets = None,
    create: Annotated[
        bool, typer.Option("--create", help="Write what the sinks receive into the file as the expected rows.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON lines.")] = False,
) -> None:
    """Run the cases in the file's `tests:` section.

    A case gives rows for each source and expects rows at each sink, order aside.

    Exit code 0: all passed. 1: some failed. 2: the topology is wrong.
    """
    topology = load(file, sets, quiet=as_json)
    if not topology.tests:
        fail("the file has no tests: section; see `penstock init` for one that has", 2)
    path = topology_path(file)
    if create and path.suffix not in (".yaml", ".yml"):
        fail("--create fills in YAML files only", 2)
    from penstock.testing import run_on, shared_session

    with err.status("starting Spark"):
        shared_session()
    failed = 0
    for case in topology.tests:
        with err.status(f"running {case.name}"):
            result = run_on(topology, given=case.given)
        if create:
            _fill_in(path, case, result, topology)
            continue
        wrong = _compare(case, result)
        failed += bool(wrong)
        _show(case, wrong, as_json)
    if not create and not as_json:
        out.print(f"{len(topology.tests) - failed} passed, {failed} failed")
    if failed:
        sys.exit(1)


Differences = Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]]


def _compare(case: Case, result: Result) -> Differences:
    from penstock.testing import differences

    found = {sink: differences(rows, result[sink]) for sink, rows in case.expect.items()}
    return {sink: pair for sink, pair in found.items() if pair != ([], [])}


def _show(case: Case, wrong: Differences, as_json: bool) -> None:
    if as_json:
        detail = {sink: {"missing": missing, "unexpected": more} for sink, (missing, more) in wrong.items()}
        sys.stdout.write(json.dumps({"case": case.name, "passed": not wrong, "differences": detail}) + "\n")
        return
    out.print(Text.assemble(("✗ ", "red") if wrong else ("✓ ", "green"), case.name))
    for sink, (missing, more) in wrong.items():
        for row in missing:
            out.print(Text(f"    {sink}: missing    {json.dumps(row)}", style="red"), soft_wrap=True)
        for row in more:
            out.print(Text(f"    {sink}: unexpected {json.dumps(row)}", style="yellow"), soft_wrap=True)


def _fill_in(path: Path, case: Case, result: Result, topology: Topology) -> None:
    from penstock.topology.yaml_writer import replace_expected

    rows = {sink.name: result[sink.name] for sink in topology.sinks}
    text = path.read_bytes().decode("utf-8")
    path.write_bytes(replace_expected(text, case.name, rows).encode("utf-8"))
    out.print(f"filled in {case.name}: {sum(map(len, rows.values()))} rows")
