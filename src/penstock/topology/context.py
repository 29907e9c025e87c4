"""What custom code may know of where and when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from penstock.topology.state import KeyedState, Timers, from_milliseconds


@dataclass(frozen=True)
class PresentEpoch:
    """The epoch whose tuples are being processed, as its record says."""

    epoch: int
    time_ms: int
    last: bool = False
    """Whether it is the end of bounded input."""


class Context:
    """`context` of a bolt, and of a function that has a parameter of that name.

    All it says is the same when an epoch is processed again, anywhere: code that takes its time and its random numbers
    from here is deterministic.
    """

    def __init__(
        self, operator: str, instance: int, topology: str = "", present: Callable[[], PresentEpoch] | None = None
    ) -> None:
        self.operator = operator
        self.instance = instance
        """Which of the operator's parallel instances this is, from 0."""
        self.port = ""
        """The input port that the tuple at hand came in by, where the operator has named ones."""
        self._topology = topology
        self._ask_present = present
        self._present: PresentEpoch | None = None
        self._seed: Callable[[], object] = lambda: self.epoch
        self._random: tuple[object, Random] | None = None
        self._keyed: tuple[Any, KeyedState, Timers] | None = None

    @property
    def epoch(self) -> int:
        """The number of the epoch at hand."""
        return self.present.epoch

    @property
    def time(self) -> datetime:
        """The time of the epoch at hand, in UTC: what 'now' means to every operator in it."""
        return from_milliseconds(self.present.time_ms)

    @property
    def random(self) -> Random:
        """Random numbers of its own for every key and epoch; without a key, for every tuple."""
        seed = self._seed()
        if self._random is None or self._random[0] != seed:
            self._random = seed, Random(f"{self._topology}|{self.operator}|{seed!r}")
        return self._random[1]

    @property
    def key(self) -> Any:
        """The key at hand: the value of the key column, or a tuple where `key` names several."""
        return self._of_key()[0]

    @property
    def state(self) -> KeyedState:
        """What is remembered of the key at hand: `state.value(name)`, `state.list(name)`, `state.map(name)`."""
        return self._of_key()[1]

    @property
    def timers(self) -> Timers:
        """The timers of the key at hand."""
        return self._of_key()[2]

    # -- for those who run the code -------------------------------------------------------------

    @property
    def present(self) -> PresentEpoch:
        if self._present is None:
            if self._ask_present is None:
                raise RuntimeError("there is no epoch at hand")
            self._present = self._ask_present()
        return self._present

    def seeded_by(self, seed: Callable[[], object]) -> None:
        """Have the random numbers begin anew whenever `seed` gives something else."""
        self._seed = seed

    def turn_to(self, keyed: tuple[Any, KeyedState, Timers] | None) -> None:
        """From now on it is about this key, with its state and its timers; None: about no key."""
        self._keyed = keyed
        self._random = None

    def _of_key(self) -> tuple[Any, KeyedState, Timers]:
        if self._keyed is None:
            raise RuntimeError(
                f"operator '{self.operator}' has no key, so there is no state: write `key: column` beside `custom`, "
                "and use it only while a tuple or a timer is processed"
            )
        return self._keyed
