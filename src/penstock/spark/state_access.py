"""Where the state of an operator's keys is: asked for and written for many keys at a time."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.spark.state_socket import (
    Key,
    Phase,
    StateSocket,
    check_done,
    clear_value,
    delete_timer,
    enter_phase,
    expired_timers,
    get_value,
    register_timer,
    set_key,
    timers_in,
    update_value,
    value_in,
)

STATE = "state"
"""The one state variable: all that is remembered of a key, as bytes. See `topology.state_encoding`."""

Wake = tuple[Key, int]
"""A key, and the moment in milliseconds for which it was entered to be looked at."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the state of one key."""

    key: Key
    encoded: bytes | None
    """None: nothing is remembered of it any more."""
    enter: int | None = None
    """A moment to enter the key for."""
    strike: int | None = None
    """The moment it was entered for before, which counts no more."""


class StateAccess(Protocol):
    """The states of one task's keys."""

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        """What is remembered of each key; None where that is nothing."""

    def expect(self, keys: Sequence[Key]) -> None:
        """These are what `load` asks for next, and nothing is saved of them before: begin to fetch them."""

    def save(self, changes: Sequence[Change]) -> None:
        """Remember this from now on."""

    def due(self, until_ms: int) -> Iterator[list[Wake]]:
        """The keys that are entered for a moment until then, by moment, in portions. To be called once, after all
        tuples; what is saved between two portions is not among them when it is entered for later."""


class SparkStates:
    """The states in Spark's state store, through the socket of its server."""

    def __init__(self, server: StateSocket) -> None:
        self._server = server
        self._get = get_value(STATE)
        self._clear = clear_value(STATE)
        self._expected: deque[Sequence[Key]] = deque()

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        if not self._expected:
            self.expect(keys)
        assert self._expected.popleft() == keys
        return [value_in(answer) for answer in self._server.answers()[1::2]]

    def expect(self, keys: Sequence[Key]) -> None:
        requests: list[bytes] = []
        for key in keys:
            requests += (set_key(key), self._get)
        self._server.ask(requests)
        self._expected.append(keys)

    def save(self, changes: Sequence[Change]) -> None:
        requests: list[bytes] = []
        for change in changes:
            requests.append(set_key(change.key))
            requests.append(self._clear if change.encoded is None else update_value(STATE, change.encoded))
            if change.strike is not None:
                requests.append(delete_timer(change.strike))
            if change.enter is not None:
                requests.append(register_timer(change.enter))
        self._server.tell(requests)

    def due(self, until_ms: int) -> Iterator[list[Wake]]:
        check_done(self._server.exchange([enter_phase(Phase.DATA_PROCESSED)]))
        ask = expired_timers(until_ms, uuid.uuid4().hex)
        more = True
        while more:
            answer = timers_in(self._server.exchange([ask])[0])
            if answer.timers:
                yield answer.timers
            more = answer.more
