"""What the supervisor of a topology has said: progress as JSON lines, and words."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.console.home import TopologyPlace
from penstock.console.masking import masked
from penstock.console.private_files import write_private
from penstock.coordination.base import Coordinator
from penstock.epochs.log import EpochLog
from penstock.runtime.progress_file import ProgressFile
from penstock.runtime.state_folder import StateFolder

_LAST_WORDS = 2_000
DELIVERIES = 20
"""Of how many epochs it is told again and again who delivered them: more than there are between two looks."""
_PROGRESS_BYTES = 32_000
_NUMBERS = ("epoch", "lag", "late")
_NUMBERS_OR_NOT = ("epoch_ms", "age_ms", "at_work", "moved", "at")
_COUNTS = ("tuples", "delivered", "failed")
_COUNTS_OR_NOT = ("ports", "malformed")
_LONGEST_LOG = 10_000_000
_SHOWN_BYTES = 100_000
"""Of a log, how much of its end is shown: it may have to pass through the coordinator."""


def last_lines(log: Path, length: int) -> list[str]:
    """The whole lines among the last bytes of a log."""
    try:
        with log.open("rb") as file:
            start = max(file.seek(0, os.SEEK_END) - length, 0)
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines(keepends=True)
    except OSError:
        return []
    return [line.rstrip() for line in lines[1 if start else 0 :] if line.endswith("\n")]


def shown_log(place: TopologyPlace, replica: str | None, sets: Sequence[str]) -> str:
    """The end of what a topology's supervisor, or one of its replicas, has said here, without what was ever set."""
    log = place.log if replica is None else _log_of(place.state.replica(replica))
    said = "\n".join(last_lines(log, _SHOWN_BYTES))
    return "".join(f"{line}\n" for line in masked(said, (*sets, *place.secrets())).splitlines())


def shorten_logs(place: TopologyPlace) -> None:
    """Have none of what a topology's supervisor and its replicas say here fill the disk."""
    for log in (place.log, *map(_log_of, place.state.replicas().values())):
        shorten(log)


def _log_of(replica: StateFolder) -> Path:
    # As `replication.replica` has it, which brings Spark along.
    return replica.logs / "replica.log"


def last_words(log: Path, secrets: Sequence[str] = ()) -> str:
    """The last of what a topology's supervisor has said that is no progress, without what is secret."""
    said = [line for line in last_lines(log, 20 * _LAST_WORDS) if line and not line.startswith("{")]
    return masked("\n".join(said[-5:]), secrets)[-_LAST_WORDS:]


def newest_progress(place: TopologyPlace) -> dict[str, Any] | None:
    """How far a topology is: as its supervisor has it now, or has said when it last said anything."""
    found = ProgressFile(place.progress).read()
    return found if is_progress(found) else last_progress(place.log)


def is_progress(found: Any) -> bool:
    """Whether it is what a run tells: the author's code can write to the same files."""
    return (
        isinstance(found, dict)
        and all(_is_number(found.get(name)) for name in _NUMBERS)
        and all(_is_number(found.get(name, 0)) for name in _NUMBERS_OR_NOT)
        and all(_are_counts(found.get(name)) for name in _COUNTS)
        and all(_are_counts(found.get(name, {})) for name in _COUNTS_OR_NOT)
    )


def _are_counts(found: Any) -> bool:
    """An operator whose tuples are not known has None."""
    return isinstance(found, dict) and all(count is None or _is_number(count) for count in found.values())


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)


def newest_deliveries(coordinator: Coordinator | None) -> tuple[int, str]:
    """An epoch, and which replica delivered that one and each after it: a digit each, `-` where nobody knows."""
    known = EpochLog(coordinator).deliveries(DELIVERIES) if coordinator is not None else {}
    if not known:
        return 0, ""
    last = max(known)
    first = max(min(known), last - DELIVERIES + 1)
    # There are at most nine replicas.
    return first, "".join(known.get(epoch, "-")[0] for epoch in range(first, last + 1))


def last_progress(log: Path) -> dict[str, Any] | None:
    """The newest progress that a topology's supervisor has told."""
    for line in reversed(last_lines(log, _PROGRESS_BYTES)):
        if line.startswith(('{"event": "progress"', '{"event": "end"')):
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if is_progress(found):
                    return dict(found)
    return None


def shorten(log: Path) -> None:
    """Keep the end of a log that has grown too long; whoever writes to it goes on."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > _LONGEST_LOG:
            end = "\n".join(last_lines(log, _LONGEST_LOG // 10))
            # First, for the disk may be full of it.
            os.truncate(log, 0)
            write_private(log.with_suffix(".log.1"), end.encode())
