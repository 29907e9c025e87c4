"""Storm's acker for the tuples of one task: which of them are done with, and which tuple trees are not complete.

Every tuple that a bolt is given has a 64-bit id. The ids of all tuples that come from one source tuple are XORed
together, once when a tuple is delivered and once when it is acked: the tree is complete when the result is zero. What
is left of the others in each task is XORed once more, over all tasks and operators, by Spark: see `lowering`.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.topology.bolt import Fail

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def ack_ids(operator: str, instance: int, first: int, sequences: Sequence[int]) -> list[int]:
    """The ids of tuples that an instance was given, the `first`-th and those after it, by their source tuples.

    64 bits with a sign, as Spark's bigint has; never 0. The same tuple in another instance has another id: two that
    are not acked must not cancel out.
    """
    digest = hashlib.blake2b(f"{instance} {operator}".encode(), digest_size=8).digest()
    roots = _mixed(np.array(sequences, dtype=np.int64).view(np.uint64) ^ np.uint64(int.from_bytes(digest, "big")))
    numbers = np.arange(first, first + len(sequences), dtype=np.uint64)
    ids: list[int] = _mixed(roots + numbers * _GOLDEN).view(np.int64).tolist()
    return [each or 1 for each in ids]


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit given, and no two results are the same (SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = bits ^ (bits >> np.uint64(31))
    return mixed


@dataclass(eq=False, slots=True)
class Delivery:
    """One tuple that a bolt was given, and what it has made of it so far."""

    number: int
    id: int
    sequence: int
    tup: Any
    due: float
    emitted: list[tuple[str, Any]] = field(default_factory=list)
    """Port and values."""
    error: BaseException | None = None
    """Why it failed; None of a tuple that is acked."""


@dataclass
class AckLedger:
    """What became of the tuples of one task. Every method may be called from every thread.

    A tuple is known by its object, which is kept until it is decided and handed on. So an ack that comes late, for a
    tuple of an earlier task, finds nothing and does nothing.
    """

    operator: str
    instance: int
    timeout: float
    clock: Callable[[], float] = time.monotonic
    _number: int = 0
    _waiting: bool = False
    """Whether anybody wants to be told when no tuple is open; to tell nobody costs time for every tuple."""
    _open: dict[int, Delivery] = field(default_factory=dict)
    """Neither acked nor failed, by the identity of the tuple, in the order of delivery."""
    _decided: dict[int, Delivery] = field(default_factory=dict)
    _trees: dict[int, int] = field(default_factory=dict)
    """By source tuple, the XOR of the ids of its open tuples; none where it is zero."""

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._all_decided = threading.Condition(self._lock)

    def deliver(self, sequences: Sequence[int], tuples: Iterable[Any]) -> Iterator[Delivery]:
        """Tuples for the bolt, as objects that it was never given before; each is delivered when its turn comes."""
        first = self._number + 1
        self._number += len(sequences)
        ids = ack_ids(self.operator, self.instance, first, sequences)
        for number, (made, sequence, tup) in enumerate(zip(ids, sequences, tuples, strict=True), first):
            delivery = Delivery(number, made, sequence, tup, self.clock() + self.timeout)
            with self._lock:
                self._open[id(tup)] = delivery
                self._combine(delivery)
            yield delivery

    def emit(self, tup: Any, port: str, values: Any) -> None:
        """Something was emitted for a tuple; nothing happens when that has failed, or is not known any more.

        Raises ValueError when it is acked: what was emitted for it may be gone already. It fails then.
        """
        with self._lock:
            delivery = self._open.get(id(tup))
            if delivery is not None:
                delivery.emitted.append((port, values))
                return
            decided = self._decided.get(id(tup))
            if decided is not None and decided.error is None:
                decided.error = Fail("emit was called for a tuple after its ack: emit first")
                raise ValueError(str(decided.error))

    def ack(self, tup: Any) -> None:
        self._decide(tup, None)

    def fail(self, tup: Any, error: BaseException) -> None:
        self._decide(tup, error)

    def overrule(self, delivery: Delivery, error: BaseException) -> None:
        """The bolt raised while it processed the tuple: it has failed, even if it was acked."""
        self._decide(delivery.tup, error)
        with self._lock:
            delivery.error = error

    def wait(self) -> None:
        """Until no tuple is open, or the time of the last one is over."""
        with self._lock:
            self._waiting = True
            while self._open:
                left = next(reversed(self._open.values())).due - self.clock()
                if left <= 0:
                    return
                self._all_decided.wait(left)

    def take_decided(self) -> list[Delivery]:
        """Those acked or failed since the last call, in the order of delivery. Nothing changes them any more."""
        with self._lock:
            taken, self._decided = list(self._decided.values()), {}
        return sorted(taken, key=lambda delivery: delivery.number)

    def take_open(self) -> list[Delivery]:
        """Give up those whose tree is not complete, in the order of delivery: acks for them come too late."""
        with self._lock:
            taken = [delivery for delivery in self._open.values() if delivery.sequence in self._trees]
            self._open.clear()
            self._trees.clear()
        return taken

    def _decide(self, tup: Any, error: BaseException | None) -> None:
        """The first word counts."""
        with self._lock:
            delivery = self._open.pop(id(tup), None)
            if delivery is None:
                return
            delivery.error = error
            self._decided[id(tup)] = delivery
            self._combine(delivery)
            if self._waiting and not self._open:
                self._all_decided.notify_all()

    def _combine(self, delivery: Delivery) -> None:
        combined = self._trees.pop(delivery.sequence, 0) ^ delivery.id
        if combined:
            self._trees[delivery.sequence] = combined
