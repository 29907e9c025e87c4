"""What a node knows of one topology that it tends, and does about it at present."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from penstock.console.home import TopologyPlace
from penstock.console.tending import There
from penstock.coordination.base import Coordinator


@dataclass
class Tended:
    """A topology of this node."""

    place: TopologyPlace
    there: There = field(default_factory=There)
    process: subprocess.Popen[bytes] | None = None
    """Its supervisor, where this process has started it."""
    told_to_end: frozenset[int] = frozenset()
    """The replicas, which nobody watched, that were told to end: told twice, they would not end their epoch."""
    why: str = ""
    """Why it ended, or does not start."""
    trouble: str = ""
    """Why another version was not put in place: the one before goes on."""
    unreadable: str = ""
    """Why it could not be seen how it is: what is known of it may be old."""
    busy: bool = False
    """Whether a command for it is being carried out."""
    may_be_killed: bool = False
    """Whether that command neither starts processes of it nor holds its state: a kill need not wait for it."""
    unpacked: str = ""
    """The digest of the version whose files are in the working folder, where this process has put them there."""
    fetching: tuple[str, Future[bytes]] | None = None
    """The digest of a bundle that was asked for, and its answer, which is not here or was not looked at yet."""
    refused: str = ""
    """The digest of a bundle that could not be had."""
    coordinator: Coordinator | None = None
    """The topology's own, once it was looked at."""
    not_before: float = 0.0
    """When to try again, where the machine did not let it."""
    failed_renewals: dict[str, int] = field(default_factory=dict)
    """By version, how often it was not put in place."""
    rolling: subprocess.Popen[str] | None = None
    """A command that goes from replica to replica."""

    told: Mapping[str, Any] = field(default_factory=dict)
    """What was last told of it."""
    told_at: float = 0.0
    """When, by a clock that nobody sets."""
    divergence: str = ""
    """How replicas were seen to differ since it was started."""

    def is_news(self, seen: Mapping[str, Any], seconds: float) -> bool:
        """Whether there is something else to tell, or the same was told so long ago."""
        return {**seen, "at": self.told.get("at")} != self.told or time.monotonic() - self.told_at >= seconds

    def note_told(self, seen: Mapping[str, Any]) -> None:
        self.told, self.told_at = seen, time.monotonic()

    def give_up_rolling(self) -> None:
        if self.rolling is not None:
            self.rolling.terminate()
