"""A lease: one holder at a time, and no longer than it gives signs of life.

There is no common clock. The holder writes a new value with every renewal and counts its time from before
the write. A contender takes over a value that it has seen unchanged for most of the time to live, counted
from after its first look. So the holder always stops first, whoever was frozen and for however long.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from penstock.coordination.base import SESSION_TTL_SECONDS, Coordinator
from penstock.coordination.process_mark import since_start_of_machine

_HELD_SHARE = 0.75
"""The part of the time to live for which a renewal is good: clocks may run a little apart."""
_TAKEN_SHARE = 0.85
"""The part after which others take it, so that it has changed hands within the time to live."""


@dataclass(frozen=True)
class Holding:
    """What is written down about a lease."""

    holder: str | None = None
    """The name of the holder; None when it was given back."""
    token: str = ""
    """Tells two holders of one name apart."""
    term: int = 0
    """Goes up by one whenever the lease changes hands."""
    renewals: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Holding:
        return cls(**json.loads(text))


class Lease:
    """A contender for, or the holder of, the lease with this key. For one thread at a time, but for `held`.

    `acquire` and `renew` never wait: call them again and again, several times in the time to live.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        key: str,
        holder: str,
        ttl: float = SESSION_TTL_SECONDS,
        clock: Callable[[], float] = since_start_of_machine,
    ) -> None:
        """All contenders for a key must give the same `ttl`, in seconds."""
        self.key = key
        self.holder = holder
        self.ttl = ttl
        self.term = 0
        """The term in which it was last held: what is done under an older term is out of date."""
        self._coordinator = coordinator
        self._clock = clock
        self._token = uuid.uuid4().hex
        self._good_until: float | None = None
        self._seen: tuple[str, float] | None = None

    @property
    def held(self) -> bool:
        """Whether the lease is certainly held now. False once the last renewal has grown old."""
        good_until = self._good_until
        return good_until is not None and self._clock() < good_until

    def acquire(self) -> bool:
        """Take the lease if it is free or abandoned, renew it if it is held; whether it is held now."""
        began = self._clock()
        text = self._coordinator.get(self.key)
        if text is None:
            free = Holding().to_json()
            text = self._coordinator.create_if_absent(self.key, free)
        found = Holding.from_json(text)
        if found.token == self._token:
            return self._write(text, replace(found, renewals=found.renewals + 1), began)
        self._good_until = None
        if found.holder is not None and not self._abandoned(text):
            return False
        return self._write(text, Holding(self.holder, self._token, found.term + 1), began)

    def renew(self) -> bool:
        """Go on holding the lease; False if somebody else has it by now, or it was never held."""
        if self._good_until is None:
            return False
        began = self._clock()
        text = self._coordinator.get(self.key)
        found = Holding() if text is None else Holding.from_json(text)
        if text is None or found.token != self._token:
            self._good_until = None
            return False
        return self._write(text, replace(found, renewals=found.renewals + 1), began)

    def release(self) -> None:
        """Give the lease back, so that the next can have it at once; nothing happens if it is not held."""
        self._good_until = None
        text = self._coordinator.get(self.key)
        if text is not None and (found := Holding.from_json(text)).token == self._token:
            self._coordinator.replace(self.key, text, Holding(term=found.term).to_json())

    def _abandoned(self, text: str) -> bool:
        now = self._clock()
        if self._seen is None or self._seen[0] != text:
            self._seen = (text, now)
        return now - self._seen[1] >= self.ttl * _TAKEN_SHARE

    def _write(self, text: str, holding: Holding, began: float) -> bool:
        if not self._coordinator.replace(self.key, text, holding.to_json()):
            self._good_until = None
            return False
        self.term = holding.term
        self._good_until = began + self.ttl * _HELD_SHARE
        return True
