"""One topology in few words, for whoever looks. Pure."""

from __future__ import annotations

from typing import Any

from penstock.console.tending import How
from penstock.console.watching import Watched


def is_running(watched: Watched) -> bool:
    return watched.seen is not None and watched.seen["how"] == How.RUNNING and not watched.away


def summary(watched: Watched) -> dict[str, Any]:
    """One topology in few words."""
    wanted, seen = watched.wanted, watched.seen or {}
    progress = seen.get("progress") or {}
    how = seen.get("how", "starting" if wanted.nodes else "waiting for a node")
    return {
        "name": wanted.name,
        "how": "away" if watched.away else how,
        "why": f"the node {', '.join(sorted(set(wanted.nodes.values())))} says nothing" if watched.away
               else seen.get("why", ""),
        "goal": wanted.goal,
        "version": wanted.digest[:12],
        "epoch": seen.get("epoch", 0),
        "counted": progress.get("epoch", 0),
        "safety": seen.get("safety", ""),
        "divergence": seen.get("divergence", ""),
        "replicas": seen.get("replicas", []),
        "wanted_replicas": wanted.replicas,
        "lag": progress.get("lag", 0),
        "latency_ms": progress.get("age_ms", 0.0),
        "epoch_ms": progress.get("epoch_ms", 0.0),
        "delivered": progress.get("delivered", {}),
        "tuples": progress.get("tuples", {}),
        "failed": progress.get("failed", {}),
        "malformed": progress.get("malformed", {}),
        "late": progress.get("late", 0),
        "waiting": progress.get("waiting"),
        "nodes": sorted(set(wanted.nodes.values())),
        "chaos": wanted.chaos,
        "busy": bool(seen.get("busy")),
        "at": seen.get("at"),
    }  # fmt: skip
