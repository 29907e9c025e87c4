"""How to run a topology, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.runtime.progress import Snapshot
from penstock.spark.session import default_master


@dataclass(frozen=True)
class RunSettings:
    """How to run a topology; the topology itself says what."""

    master: str = field(default_factory=default_master)
    state: Path | None = None
    """Where to keep state; by default `.penstock/<topology>` beside the topology's file."""
    fresh: bool = False
    """Forget an interrupted run instead of going on from it."""
    coordinator: str | None = None
    """Where the epoch log is kept: `zookeeper://host:port/root`. By default a file in the state folder."""
    scratch: Path | None = None
    """For rehearsals: the folder into which all sinks write instead."""
    replica: str | None = None
    """Its name among the replicas of the topology, when it is one of several: then siblings write to the same sinks,
    and whoever started them has made the sinks ready."""
    metrics: bool = True
    memory: str = "1g"
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    ended: bool
    """True at the end of bounded input, False when it was stopped."""
    progress: Snapshot
