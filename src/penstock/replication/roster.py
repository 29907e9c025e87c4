"""What replicas tell each other through the coordinator: who is there, how far each is, who was first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.coordination.base import Coordinator
from penstock.errors import CoordinationError
from penstock.replication.divergence import Divergence, find_divergence

_MEMBERS = "replicas/"
_TOLD = "told/"
_VERSION = "version"
_DIGESTS = "digests/"
_DIVERGENCES = "divergence/"
"""By version: replicas of one version may differ while those of another are put in their place."""
_UNLIKE = "unlike"
"""There since replicas have differed, until all have begun with the state of one."""
_BEGUN = "begun/"
"""By replica, the version with which it has begun with that state since."""
_CHANGING = "changing"
_DIGESTS_KEPT = 100

RUNNING, FROZEN, ENDED, STOPPED, FAILED = "running", "frozen", "ended", "stopped", "failed"
CHANGING = "changing"
"""It does no epoch, because it changes its state: it divides it anew, or takes a sibling's. That may take minutes."""
PARKED = "parked"
"""Said by the supervisor in the name of a replica that it does not start any more."""


@dataclass(frozen=True)
class Member:
    """A replica that is running, as it has signed in."""

    name: str
    cell: str
    host: str
    process: int
    run: str
    """Tells two starts of one replica apart."""


@dataclass(frozen=True)
class Told:
    """What a replica last said of itself, or its supervisor in its name."""

    run: str
    epoch: int = 0
    first: int = 0
    """How many epochs it was the first to deliver, since its start."""
    how: str = RUNNING
    why: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)
    caught_up: bool = False
    """Whether it has been abreast of its siblings since its start, and is quick enough to be two epochs behind."""
    cold: bool = False
    """Whether since its start it has not yet taken less for its epochs than they are apart."""
    idle: int | None = None
    """The epoch after which it has had nothing to do for a while, whoever did that one; None while it has."""

    @property
    def took(self) -> float:
        """Seconds its last epoch took it, once Spark had handed it over; 0 before it has said so."""
        return float(self.progress.get("last_epoch_ms", 0.0)) / 1000

    @property
    def whole(self) -> float:
        """Seconds its last epoch took it all in all; 0 before it has said so."""
        wholes = self.progress.get("wholes_ms") or (0.0,)
        return float(wholes[-1]) / 1000


class NameTaken(CoordinationError):
    """A replica of this name is signed in: it runs, or has died so lately that its session is not over."""

    def __init__(self, other: Member) -> None:
        super().__init__(
            f"replica {other.name} is running already: process {other.process} on {other.host}, in cell {other.cell}; "
            "stop it first, or give another --replica"
        )
        self.other = other


class Roster:
    """The replicas of one topology."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def join(self, member: Member) -> None:
        """Sign in, for as long as this process gives signs of life; raises NameTaken if somebody else is signed in."""
        text = json.dumps(asdict(member))
        found = self._coordinator.create_ephemeral(_MEMBERS + member.name, text)
        if found != text:
            raise NameTaken(Member(**json.loads(found)))

    def leave(self, name: str) -> None:
        self._coordinator.delete(_MEMBERS + name)

    def tell(self, name: str, told: Told) -> None:
        self._coordinator.put(_TOLD + name, json.dumps(asdict(told)))

    def members(self) -> dict[str, Member]:
        """By name, those that give signs of life."""
        return {name: Member(**fields) for name, fields in self._entries(_MEMBERS).items()}

    def told(self) -> dict[str, Told]:
        """By name, what each last said, however long ago."""
        return {name: Told(**fields) for name, fields in self._entries(_TOLD).items()}

    def agree_on(self, version: str) -> str:
        """The version of the topology that all replicas run: this one, unless there is one already."""
        return self._coordinator.create_if_absent(_VERSION, version)

    def version(self) -> str | None:
        """The version that replicas run; None while the next one to start may bring another."""
        return self._coordinator.get(_VERSION)

    def open_to_new_version(self) -> None:
        """The next replica that starts decides which version the others must have that start after it.

        That replicas have differed is forgotten: the next version may be the remedy.
        """
        for key in (*self._coordinator.list(_DIVERGENCES), _VERSION):
            self._coordinator.delete(key)

    def are_unlike(self) -> bool:
        """Whether what replicas remember may differ, since what they gave has; also when code was corrected since."""
        return self._coordinator.get(_UNLIKE) is not None

    def note_begun(self, name: str, version: str) -> None:
        """This replica has begun with the state that all of its version go on with, since replicas were unlike."""
        self._coordinator.put(_BEGUN + name, json.dumps(version))

    def begun(self, version: str) -> set[str]:
        """The replicas that are like each other since: those of another version have gone on as they were."""
        return {name for name, its in self._entries(_BEGUN).items() if its == version}

    def note_alike(self) -> None:
        """All have begun with the state of one of them since, or with nothing."""
        for key in (_UNLIKE, *self._coordinator.list(_BEGUN)):
            self._coordinator.delete(key)

    def adopt(self, version: str) -> None:
        """From now on replicas run this version."""
        self._coordinator.put(_VERSION, version)

    def take_turn(self, mine: str) -> bool:
        """Whether it is this one's turn to change replicas, until `end_turn` or the end of its process.

        Two commands that go from replica to replica at once would leave none that delivers.
        """
        return self._coordinator.create_ephemeral(_CHANGING, mine) == mine

    def end_turn(self, mine: str) -> None:
        # Frozen for too long, one may have lost it to another.
        if self._coordinator.get(_CHANGING) == mine:
            self._coordinator.delete(_CHANGING)

    def compare(
        self, name: str, version: str, epoch: int, compared: Mapping[str, str], digests: Mapping[str, str]
    ) -> Divergence | None:
        """Publish what this replica gave in an epoch, and compare it with what others of its version have published.

        For `compared` and `digests` see `find_divergence`.
        """
        prefix = f"{_DIGESTS}{epoch:012d}/{version}/"
        self._coordinator.put(prefix + name, json.dumps(digests))
        found = find_divergence(epoch, compared, self._entries(prefix))
        if found is not None:
            self._coordinator.create_if_absent(_DIVERGENCES + version, json.dumps(asdict(found)))
            self._coordinator.create_if_absent(_UNLIKE, str(epoch))
        if epoch % _DIGESTS_KEPT == 0:
            for key in self._coordinator.list(_DIGESTS):
                if int(key.removeprefix(_DIGESTS).partition("/")[0]) > epoch - _DIGESTS_KEPT:
                    break
                self._coordinator.delete(key)
        return found

    def divergence(self) -> Divergence | None:
        """The first that any replica of the present version has found; while none is agreed on, of the last one."""
        found, version = self._entries(_DIVERGENCES), self.version()
        fields = next(iter(found.values()), None) if version is None else found.get(version)
        if fields is None:
            return None
        return Divergence(fields["epoch"], fields["node"], tuple(fields["replicas"]))

    def forget(self) -> None:
        """Forget all that was said; those who are signed in stay so, and what they remember may still differ."""
        for prefix in (_TOLD, _DIGESTS, _DIVERGENCES):
            for key in self._coordinator.list(prefix):
                self._coordinator.delete(key)
        self._coordinator.delete(_VERSION)

    def _entries(self, prefix: str) -> dict[str, Any]:
        found = self._coordinator.entries(prefix)
        return {key.removeprefix(prefix): json.loads(text) for key, text in found.items()}
