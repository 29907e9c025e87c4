"""What the nodes of a topology see of it, put together.

Nobody compares the clocks of two machines: how old a report is says the clock of who reads it, from when it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SILENT_SECONDS = 5.0
"""A node that has said nothing for so long is away; what it said is shown as old."""
_RANK = ("running", "stopping", "starting", "failed", "stopped", "ended")
"""Of a topology that is on several nodes, how it is: as the first of these that any node says."""

Told = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By topology and node, what a node has said last."""


class Hearing:
    """When what each node says of a topology came: at the first look that found it changed."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], tuple[float, float]] = {}
        """By topology and node, the mark of the last report and the moment at which it came."""

    def hear(self, told: Told, now: float) -> dict[str, dict[str, float]]:
        """By topology and node, when its report came; `now` is of a clock that nobody sets."""
        before, self._heard = self._heard, {}
        moments: dict[str, dict[str, float]] = {}
        for topology, by_node in told.items():
            for node, seen in by_node.items():
                # The writer's clock is nothing but a mark here: another one is another report.
                mark, moment = before.get((topology, node), (None, now))
                moment = moment if mark == seen["at"] else now
                self._heard[topology, node] = (seen["at"], moment)
                moments.setdefault(topology, {})[node] = moment
        return moments


def merged(told: Mapping[str, Mapping[str, Any]], heard: Mapping[str, float]) -> dict[str, Any] | None:
    """What all nodes see of one topology, as one: of what came lately, the newest look at each replica.

    `heard` says by node when its report came. To what the nodes say is added: `heard`, when the newest came, `at`, its
    time by the clock of who wrote it, and `teller` and `told`, whose progress it is and its time by that node's clock.
    """
    newest = max(heard.values(), default=None)
    if newest is None:
        return None
    if len(told) == 1:
        # The usual case: nothing has to be put together.
        ((node, seen),) = told.items()
        return {"divergence": "", **seen, "heard": newest, "teller": node, "told": seen["at"]}
    nodes = sorted((node for node in told if newest - heard[node] <= SILENT_SECONDS), key=lambda node: heard[node])
    recent = [told[node] for node in nodes]
    views = {view["name"]: view for seen in recent for view in seen["replicas"]}
    teller = max(nodes, key=lambda node: int((told[node]["progress"] or {}).get("epoch", 0)))
    first = min(reversed(recent), key=lambda seen: _RANK.index(seen["how"]) if seen["how"] in _RANK else len(_RANK))
    return {
        **first,
        "at": recent[-1]["at"],
        "heard": newest,
        "progress": told[teller]["progress"],
        "teller": teller,
        "told": told[teller]["at"],
        "replicas": [views[name] for name in sorted(views)],
        "divergence": next((found for seen in recent if (found := seen.get("divergence"))), ""),
    }
