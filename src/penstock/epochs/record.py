"""The epoch record: for every source where the epoch ends, and the time at which it was cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEQUENCE_BITS = 33
"""A tuple's sequence is epoch · 2^33 + its place within the epoch: ordered over the whole run, and with room for ten
epochs a second over three years. See `epochs.sequence`."""


@dataclass(frozen=True)
class EpochRecord:
    """What is agreed about one epoch. Written once, never changed."""

    epoch: int
    time_ms: int
    """The wall-clock time of the cut: what 'now' means to every operator in this epoch."""
    ends: Mapping[str, Mapping[str, Any]]
    """The offset at which the epoch ends, by source."""
    tuples: Mapping[str, int]
    backlog: int = 0
    """About how many tuples were waiting behind this epoch when it was cut."""
    last: bool = False
    """True when every source has come to its end."""
    shed: Mapping[str, float] = field(default_factory=dict)
    """The fraction of each source's tuples that is dropped, where any is."""
    seed: int = 0
    """What decides which ones: every replica drops the same."""
    replays: Mapping[str, int] = field(default_factory=dict)
    """How many tuples that failed in earlier epochs are read again, by source; see `epochs.postponed`."""
    ended: tuple[str, ...] = ()
    """Where windows wait for it: the sources that have come to their end, with nothing left to replay."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """By operator that enriches tuples, the version of its table; see `spark.table_versions`."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "epoch": self.epoch,
                "time_ms": self.time_ms,
                "ends": self.ends,
                "tuples": self.tuples,
                "backlog": self.backlog,
                "last": self.last,
                **({"shed": self.shed, "seed": self.seed} if self.shed else {}),
                **({"replays": self.replays} if self.replays else {}),
                **({"ended": list(self.ended)} if self.ended else {}),
                **({"tables": self.tables} if self.tables else {}),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> EpochRecord:
        fields = json.loads(text)
        return cls(**{**fields, "ended": tuple(fields.get("ended", ()))})
