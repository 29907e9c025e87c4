"""What is wanted: the topologies that were submitted, each in its newest version, in the coordinator.

Everybody who acts looks here; nobody is told. So whoever comes back after a failure finds out what it has missed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from penstock.coordination.base import Coordinator
from penstock.errors import CommandRefused

_TOPOLOGIES = "console/topologies/"
_HISTORIES = "console/histories/"
"""By name, how often a topology that was removed was begun anew and started: its files and its log still say so."""


class Goal(StrEnum):
    """What a topology should be doing."""

    RUN = "run"
    STOP = "stop"
    """Finish the epoch, and stay so until it is to run again."""
    PAUSE = "pause"
    """The same, for something that is done meanwhile."""

    @property
    def runs(self) -> bool:
        return self is Goal.RUN


@dataclass(frozen=True)
class Beginning:
    """The checkpoint with which a topology begins, where its replicas are on several nodes."""

    history: int
    """For this number of `fresh` only: the next time it begins with nothing, or with another."""
    node: str
    """Among whose files it is."""
    checkpoint: str
    fresh_sinks: bool = False


@dataclass(frozen=True)
class Wanted:
    """One topology as it was submitted."""

    name: str
    digest: str
    """Of its bundle; see `bundle.digest_of`."""
    file: str
    """The topology's file in the bundle."""
    sets: tuple[str, ...] = ()
    """As for `--set`."""
    replicas: int = 1
    chaos: bool = False
    """Whether it may be crashed on purpose."""
    spread: bool = False
    """Whether each replica has a node of its own."""
    goal: Goal = Goal.RUN
    fresh: int = 0
    """How often it was told to begin anew; a node that has seen less begins anew."""
    starts: int = 0
    """How often somebody has said that it is to start: one that had failed is tried again."""
    generation: int = 0
    """Grows with every change."""
    nodes: dict[str, str] = field(default_factory=dict)
    """By replica, the node that runs it."""
    beginning: Beginning | None = None
    """With what it was last told to begin, if not with nothing."""
    variables: tuple[str, ...] = ()
    """The names of `${env:NAME}` in its file: what they stand for may be a password."""
    submission: str = ""
    """Tells two submissions of the same files apart."""

    @classmethod
    def from_json(cls, text: str) -> Wanted:
        fields = json.loads(text)
        beginning = fields.get("beginning")
        return cls(**{**fields, "sets": tuple(fields["sets"]), "variables": tuple(fields.get("variables", ())),
                      "goal": Goal(fields["goal"]),
                      "beginning": None if beginning is None else Beginning(**beginning)})  # fmt: skip

    @property
    def begins_with(self) -> Beginning | None:
        """The checkpoint with which its present history begins; None: with nothing."""
        return self.beginning if self.beginning is not None and self.beginning.history == self.fresh else None

    def on(self, node: str) -> tuple[str, ...]:
        """The replicas that a node runs."""
        return tuple(name for name, other in self.nodes.items() if other == node)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Desired:
    """The topologies that are wanted; changes are made by one writer at a time, and none is lost."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._read: dict[str, tuple[str, Wanted]] = {}
        """What was read last, and what it said: most of it stays as it is."""

    def names(self) -> list[str]:
        return [key.removeprefix(_TOPOLOGIES) for key in self._coordinator.list(_TOPOLOGIES)]

    def get(self, name: str) -> Wanted | None:
        text = self._coordinator.get(_TOPOLOGIES + name)
        return None if text is None else Wanted.from_json(text)

    def all(self) -> list[Wanted]:
        known = self._read
        self._read = {
            key: known[key] if key in known and known[key][0] == text else (text, Wanted.from_json(text))
            for key, text in self._coordinator.entries(_TOPOLOGIES).items()
        }
        return [wanted for _, wanted in self._read.values()]

    def add(self, wanted: Wanted) -> Wanted:
        """A topology that is new; raises CommandRefused when there is one of that name.

        One of that name that was removed has left its files: this one goes on from there, or begins anew as often as
        its `fresh` says. It starts, however that one has ended.
        """
        left = self._coordinator.get(_HISTORIES + wanted.name)
        if left is not None:
            fresh, starts = json.loads(left)
            wanted = replace(wanted, fresh=fresh + wanted.fresh, starts=starts + 1)
        text = wanted.to_json()
        if self._coordinator.create_if_absent(_TOPOLOGIES + wanted.name, text) != text:
            raise CommandRefused(
                f"there is a topology '{wanted.name}' already: submit it with --replace to put this version in its "
                "place, or remove it first"
            )
        return wanted

    def change(self, name: str, how: Callable[[Wanted], Wanted]) -> Wanted:
        """Put what `how` makes of it in its place; raises CommandRefused when there is none of that name.

        `how` is called again when somebody else was faster, and may refuse by raising CommandRefused.
        """
        while True:
            text = self._coordinator.get(_TOPOLOGIES + name)
            if text is None:
                known = ", ".join(self.names()) or "none yet"
                raise CommandRefused(f"there is no topology '{name}'; the topologies are: {known}", missing=True)
            before = Wanted.from_json(text)
            changed = replace(how(before), generation=before.generation + 1)
            if self._coordinator.replace(_TOPOLOGIES + name, text, changed.to_json()):
                return changed

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change, for as long as the coordinator is open."""
        self._coordinator.watch(_TOPOLOGIES, callback)

    def remove(self, name: str) -> None:
        """Forget a topology, but for its history."""
        wanted = self.get(name)
        if wanted is not None:
            # First: without it the next one of that name would not start.
            self._coordinator.put(_HISTORIES + name, json.dumps([wanted.fresh, wanted.starts]))
        self._coordinator.delete(_TOPOLOGIES + name)
