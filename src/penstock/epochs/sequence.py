"""A tuple's sequence: 64 bits that order tuples over the whole run, and lead back to where each was read.

     30 bits   1 bit        6 bits   26 bits
    ┌────────┬────────────┬────────┬──────────┐
    │ epoch  │ replayed?  │ source │ position │
    └────────┴────────────┴────────┴──────────┘

The position of a tuple that is read for the first time is its number in the epoch. A tuple that is replayed comes after
all others, and its position is its number among those that the epoch replays.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.epochs.record import SEQUENCE_BITS

_POSITION_BITS = 26
_REPLAYED = 1 << (SEQUENCE_BITS - 1)


@dataclass(frozen=True)
class Anchor:
    """What a sequence says: the source tuple that a tuple comes from."""

    epoch: int
    source: int
    """The number of the source, in the order written."""
    position: int
    replayed: bool = False

    @property
    def sequence(self) -> int:
        flag = _REPLAYED if self.replayed else 0
        return (self.epoch << SEQUENCE_BITS) | flag | (self.source << _POSITION_BITS) | self.position


def timer_sequence(epoch: int) -> int:
    """The sequence of what timers emit in an epoch: it comes from no source tuple, and after all that do."""
    return ((epoch + 1) << SEQUENCE_BITS) - 1


def is_of_timer(sequence: int) -> bool:
    """Whether a tuple comes from a timer and so from no source tuple: there is none to be replayed."""
    return timer_sequence(sequence >> SEQUENCE_BITS) == sequence


def anchor_of(sequence: int) -> Anchor:
    """The source tuple that a sequence stands for."""
    return Anchor(
        sequence >> SEQUENCE_BITS,
        (sequence & (_REPLAYED - 1)) >> _POSITION_BITS,
        sequence & ((1 << _POSITION_BITS) - 1),
        bool(sequence & _REPLAYED),
    )
