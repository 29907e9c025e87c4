"""What has happened to a topology between two looks, in plain words. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_GOOD, _BAD, _PLAIN = "good", "bad", "plain"
_WORDS = {
    "starting": ("is starting", _PLAIN),
    "running": ("runs", _GOOD),
    "stopping": ("stops after its epoch", _PLAIN),
    "stopped": ("has stopped", _PLAIN),
    "ended": ("has done all of its input", _GOOD),
    "failed": ("has failed and is not started again", _BAD),
}
_REMOVED = "was removed"
_SAFE = " safe:"


@dataclass(frozen=True)
class Event:
    """Something that people want to know."""

    time: float
    topology: str
    words: str
    tone: str = _PLAIN
    """`good`, `bad` or `plain`."""
    number: int = 0
    """Later ones have higher ones; 0 until it was written down."""

    def __str__(self) -> str:
        return f"{time.strftime('%H:%M:%S', time.localtime(self.time))} {self.topology}: {self.words}"


Seen = Mapping[str, Any]
"""What is seen of a topology; see `NodeSupervisor`."""


def events_between(name: str, before: Seen | None, after: Seen | None, now: float) -> list[Event]:
    """What has happened from one look to the next, which is `now`; None: there was nothing to look at."""
    if after is None:
        return [] if before is None else [Event(now, name, _REMOVED)]
    return [Event(now, name, words, tone) for words, tone in _words(before or {}, after)]


def subject(event: Event) -> str:
    """What an event is about: how the topology is, its replicas, or something else."""
    words = event.words
    if words == _REMOVED or any(words == known or words.startswith(f"{known}: ") for known, _ in _WORDS.values()):
        return "how"
    return "replicas" if words.startswith("replica ") or _SAFE in words else words


def _words(before: Seen, after: Seen) -> Iterator[tuple[str, str]]:
    if before.get("how") != after["how"]:
        words, tone = _WORDS[after["how"]]
        yield f"{words}: {after['why'].splitlines()[-1]}" if after.get("why") else words, tone
    known = {view["name"]: view for view in before.get("replicas", ())}
    for view in after["replicas"]:
        yield from _replica_words(known.get(view["name"]), view, after)
    yield from _safety_words(before, after)
    differing = after.get("divergence")
    if differing and differing != before.get("divergence"):
        yield differing, _BAD


def _replica_words(before: Mapping[str, Any] | None, view: Mapping[str, Any], after: Seen) -> Iterator[tuple[str, str]]:
    if before is None or before["phase"] == view["phase"] == "safe":
        was_replaced = before is not None and before.get("process") not in (None, view.get("process"))
        if was_replaced:
            yield f"replica {view['name']} was replaced: process {view['process']} on {view['host']}", _PLAIN
        return
    where = f" on {view['host']}" if view.get("host") else ""
    match view["phase"]:
        case "down" if before["phase"] != "down" and after["how"] == "running":
            who = f"replica {view['name']}" + (f" on {before['host']}" if before.get("host") else "")
            others = {other["phase"]: other["name"] for other in after["replicas"]}
            coming = others.get("recovering") or others.get("starting")
            if "safe" in others:
                yield f"{who} is gone; the others go on", _PLAIN
            elif coming:
                yield f"{who} is gone; output goes on when replica {coming} has caught up", _BAD
            else:
                yield f"{who} is gone; output pauses until it is back", _BAD
        case "recovering" if before["phase"] != "recovering":
            yield f"replica {view['name']}{where} is back and {view['behind']:,} epochs behind", _PLAIN
        case "safe" if before["phase"] != "safe":
            yield f"replica {view['name']}{where} has caught up", _GOOD
        case "frozen" if before["phase"] != "frozen":
            yield f"replica {view['name']}{where} is frozen", _PLAIN
        case "parked" if before["phase"] != "parked":
            yield f"replica {view['name']} is parked: {view.get('why', '')}", _BAD


def _safety_words(before: Seen, after: Seen) -> Iterator[tuple[str, str]]:
    whole = bool(after["replicas"]) and all(view["phase"] == "safe" for view in after["replicas"])
    was_whole = bool(before.get("replicas")) and all(view["phase"] == "safe" for view in before["replicas"])
    if whole and not was_whole and len(after["replicas"]) > 1:
        number = len(after["replicas"])
        yield f"{number}/{number}{_SAFE} any {'one' if number == 2 else number - 1} of them may fail now", _GOOD
