"""What a topology is, found out in a process of its own: reading one may run its author's code.

    PENSTOCK_SETS='["KEY=VALUE"]' python -m penstock.console.inspection FILE
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import CommandRefused
from penstock.topology.loading import INHERITED_SETS

_SECONDS = 60.0


@dataclass(frozen=True)
class Inspected:
    """What a console must know of a topology before it runs."""

    name: str
    replicas: int
    chaos: bool
    graph: Mapping[str, Any]
    """Nodes and edges, and where to draw them."""
    private: Sequence[str] = ()
    """What it writes into its own folder: on several nodes that would be several places."""


def inspect(file: Path, sets: Sequence[str]) -> Inspected:
    """Raises CommandRefused with all that is wrong with it."""
    command = [sys.executable, "-m", "penstock.console.inspection", str(file)]
    # Not in the command line, which everybody on the machine can see.
    variables = os.environ | {INHERITED_SETS: json.dumps(list(sets))}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
                              env=variables, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommandRefused(f"reading '{file.name}' took longer than {_SECONDS:.0f} s") from None
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise CommandRefused(f"'{file.name}' cannot be read: {done.stderr.strip()[-1000:]}") from None
    if "problems" in found:
        raise CommandRefused("the topology is wrong:\n" + "\n".join(found["problems"]))
    return Inspected(**found)


def graph_of(topology: Any) -> dict[str, Any]:
    """The nodes and edges of a topology as the page draws them; sinks are called `sink:NAME`."""
    from penstock.plan.description import brief_of, role_of
    from penstock.plan.svg import layout_of

    layout = layout_of(topology)
    nodes = {**{node.name: node for node in (*topology.sources, *topology.operators)},
             **{f"sink:{sink.name}": sink for sink in topology.sinks}}  # fmt: skip
    return {
        "width": layout.width,
        "height": layout.height,
        "nodes": [
            {"id": card.key, "name": nodes[card.key].name, "role": str(role_of(nodes[card.key])),
             "brief": brief_of(nodes[card.key]), "stateful": bool(getattr(nodes[card.key], "stateful", False)),
             "x": card.x, "y": card.y, "width": card.width, "height": card.height}
            for card in layout.cards
        ],
        "edges": [
            {"from": path.edge.start, "to": path.edge.end, "port": path.edge.port, "points": path.points}
            for path in layout.paths
        ],
    }  # fmt: skip


def private_places(topology: Any) -> list[str]:
    """The sinks that write to relative paths, each with its path."""
    from penstock.topology.dead_letters import buries, dead_letter_sink

    sinks = [*topology.sinks, *([dead_letter_sink(topology)] if buries(topology) else [])]
    paths = {sink.name: str(sink.options.get("file", "")) for sink in sinks if sink.kind == "file"}
    paths |= {sink.name: str(sink.options.get("sql", "")).partition("sqlite:///")[2] for sink in sinks
              if str(sink.options.get("sql", "")).startswith("sqlite:")}  # fmt: skip
    return [f"{name}: {path}" for name, path in paths.items() if not Path(path).is_absolute()]


def _main() -> None:
    from penstock.cli.loading import checked

    topology, problems = checked(Path(sys.argv[1]), ())
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors or topology is None:
        found: dict[str, Any] = {"problems": errors or ["it cannot be read"]}
    else:
        found = {"name": topology.name, "replicas": topology.replicas, "chaos": topology.chaos == "allowed",
                 "graph": graph_of(topology), "private": private_places(topology)}  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
