"""What a topology is, found out in a process of its own: reading one may run its author's code.

    PENSTOCK_SETS='["KEY=VALUE"]' python -m penstock.console.inspection FILE RESULT
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from penstock.console.calling import environment
from penstock.errors import CommandRefused
from penstock.validation.replicas import MAX_REPLICAS

_SECONDS = 60.0
_MOST_WORDS = 1000


class _Found(BaseModel):
    """What comes from a process in which its author's code has run: it is what we say it is, or refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class DrawnNode(_Found):
    """A node, and where it is drawn."""

    id: str
    name: str
    role: str
    brief: str
    stateful: bool
    x: float
    y: float
    width: float
    height: float


class DrawnEdge(_Found):
    """An edge, and the points that it goes through."""

    start: str = Field(alias="from")
    end: str = Field(alias="to")
    port: str
    points: list[tuple[float, float]]


class Graph(_Found):
    """Nodes and edges, and where to draw them."""

    width: float
    height: float
    nodes: list[DrawnNode]
    edges: list[DrawnEdge]


class Inspected(_Found):
    """What a console must know of a topology before it runs."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)]
    chaos: bool
    graph: Graph
    private: list[str] = []
    """What it writes into its own folder: on several nodes that would be several places."""


class Wrong(_Found):
    """All that is wrong with a topology."""

    problems: list[str]


_ANSWER: TypeAdapter[Inspected | Wrong] = TypeAdapter(Inspected | Wrong)


def inspect(file: Path, sets: Sequence[str]) -> Inspected:
    """Raises CommandRefused with all that is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="penstock-inspected-") as folder:
        # Not what it prints: its author's code may print, too.
        told = Path(folder) / "found.json"
        command = [sys.executable, "-m", "penstock.console.inspection", str(file), str(told)]
        try:
            # What is set is not in the command line, which everybody on the machine can see.
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, errors="replace", timeout=_SECONDS, env=environment(sets),
                                  check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CommandRefused(f"reading '{file.name}' took longer than {_SECONDS:.0f} s") from None
        try:
            found = _ANSWER.validate_json(told.read_bytes())
        except (FileNotFoundError, ValidationError):
            # Whole lines: a part of a secret would not be known to be one.
            why = _last_lines(done.stderr.strip()) or "what was found out about it is not what Penstock writes"
            raise CommandRefused(f"'{file.name}' cannot be read: {why}") from None
    if isinstance(found, Wrong):
        raise CommandRefused("the topology is wrong:\n" + "\n".join(found.problems))
    return found


def _last_lines(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else text[-_MOST_WORDS:].partition("\n")[2]


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
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    _main()
