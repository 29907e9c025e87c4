"""What the nodes of a topology see of it, put together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SILENT_SECONDS = 5.0
"""A node that has said nothing for so long is away; what it said is shown as old."""
_RANK = ("running", "stopping", "starting", "failed", "stopped", "ended")
"""Of a topology that is on several nodes, how it is: as the first of these that any node says."""


def merged(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """What all nodes see of one topology, as one: of what was said lately, the newest look at each replica."""
    newest = max((seen["at"] for seen in told.values()), default=None)
    if newest is None:
        return None
    if len(told) == 1:
        return dict(*told.values())
    recent = sorted((seen for seen in told.values() if newest - seen["at"] <= SILENT_SECONDS),
                    key=lambda seen: float(seen["at"]))  # fmt: skip
    views = {view["name"]: view for seen in recent for view in seen["replicas"]}
    furthest = max(recent, key=lambda seen: int((seen["progress"] or {}).get("epoch", 0)))
    first = min(reversed(recent), key=lambda seen: _RANK.index(seen["how"]) if seen["how"] in _RANK else len(_RANK))
    replicas = [views[name] for name in sorted(views)]
    return {**first, "at": newest, "progress": furthest["progress"], "replicas": replicas}
