"""All parts of a console have the same Penstock, masters and supervisors alike.

A replica could not go on from a sibling's state of another version, and what is kept in the coordinator may look
otherwise in the next one. Each part signs in for as long as it lives: when all were stopped, the next version may come.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass

from penstock.coordination.base import Coordinator
from penstock.errors import CoordinationError

_PARTS = "console/parts/"


@dataclass(frozen=True)
class Part:
    """A process of the console."""

    host: str
    process: int
    version: str


class OtherVersion(CoordinationError):
    """Parts of the console that live have another version."""


def sign_in(coordinator: Coordinator, part: Part, turned_away: Callable[[OtherVersion], None]) -> None:
    """For as long as this process gives signs of life; raises OtherVersion while there are others of another version.

    One that was frozen or cut off for long signs in again by itself; it is `turned_away` where the console has another
    version by now.
    """
    key = _PARTS + uuid.uuid4().hex

    def again() -> None:
        try:
            _enter(coordinator, key, part)
        except OtherVersion as error:
            turned_away(error)
        except CoordinationError:
            # Cut off once more: with the next session it is called again.
            pass

    _enter(coordinator, key, part)
    coordinator.on_expired(again)


def _enter(coordinator: Coordinator, key: str, part: Part) -> None:
    # Written before it is looked at: of two that come at the same moment at least one sees the other.
    coordinator.create_ephemeral(key, json.dumps(asdict(part)))
    others = [Part(**json.loads(text)) for other, text in coordinator.entries(_PARTS).items() if other != key]
    differing = sorted({(other.host, other.process, other.version) for other in others
                        if other.version != part.version})  # fmt: skip
    if differing:
        coordinator.delete(key)
        who = ", ".join(f"process {process} on {host} is {version}" for host, process, version in differing)
        raise OtherVersion(
            f"all of a console has one version of Penstock; this is {part.version}, and {who}: install the same "
            "version here, or stop all of the console and start it with the new one (what was killed counts for some "
            "seconds)"
        )
