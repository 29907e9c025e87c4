"""How many replicas there can be, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from penstock.topology.model import ANY_CELL, LOCAL, ON_DIVERGENCE, Topology
from penstock.topology.problems import Problem

MAX_REPLICAS = 9
"""Each does all the work: more than this is a slip of the finger."""

_MASTERS = ("spark://", "yarn", "k8s://")


def check_replicas(topology: Topology) -> Iterator[Problem]:
    """Replicas that cannot be placed so that no failure takes two of them."""
    where, replicas, cells = topology.where, topology.replicas, topology.cells
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not 1 <= replicas <= MAX_REPLICAS:
        yield Problem(where, f"replicas {replicas} is impossible", f"give 1 to {MAX_REPLICAS}")
        return
    if topology.on_divergence not in ON_DIVERGENCE:
        yield Problem(where, f"on_divergence '{topology.on_divergence}' is impossible", "give warn or stop")
    if ANY_CELL in cells:
        if len(cells) > 1:
            yield Problem(where, "cells: `any` stands for all of them", "leave the others out")
        return
    for cell, times in Counter(cells).items():
        if times > 1:
            yield Problem(where, f"cell '{cell}' is named twice: what takes one replica there would take both",
                          "name each cell once, or write `cells: any`")
        if cell != LOCAL and not cell.startswith(_MASTERS):
            yield Problem(where, f"cell '{cell}' is neither {LOCAL} nor a Spark master",
                          "write for example spark://host:7077")
    if replicas > len(set(cells)):
        yield Problem(
            where,
            f"{replicas} replicas need {replicas} cells, and there {_are(len(set(cells)))}: {', '.join(cells)}",
            "name more failure domains under `cells`, or write `cells: any` to have replicas share one",
        )


def _are(number: int) -> str:
    return "is one" if number == 1 else f"are {number}"
