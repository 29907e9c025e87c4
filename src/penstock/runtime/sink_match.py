"""How the sinks go on from a snapshot's epoch. Pure.

A sink that has later epochs already skips them when they are done again. That is right only if they are the same
epochs: the epoch log must still know them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.topology.dead_letters import DEAD_LETTERS


@dataclass(frozen=True)
class SinkMatch:
    """What becomes of each sink."""

    begin: tuple[str, ...] = ()
    """Their output begins anew, with the epoch after the snapshot's."""
    forget: bool = False
    """Whether the epoch log's later epochs are forgotten: others come in their place."""
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why some cannot go on; nothing when all can."""


def match_sinks(
    epoch: int, sinks: Mapping[str, int | None], agreed: Sequence[int] | None, fresh: bool
) -> SinkMatch:
    """`sinks` says how far each is, -1: nothing yet, None: it cannot tell.

    `agreed` are the epochs after `epoch` in the epoch log, None when that is of another history.
    """
    if fresh:
        note = f"the output of {', '.join(map(repr, sinks))} is removed, and begins with epoch {epoch + 1}"
        return SinkMatch(tuple(sinks), True, (note,))
    begin: list[str] = []
    notes: list[str] = []
    refused: list[str] = []
    for name, last in sinks.items():
        if last is None or last == epoch:
            continue
        if last < 0:
            begin.append(name)
            notes.append(f"sink '{name}' has no output here: it begins with epoch {epoch + 1}")
        elif last < epoch:
            # Not every epoch has dead letters.
            if name != DEAD_LETTERS:
                refused.append(f"sink '{name}' has come only to epoch {last}: those up to {epoch} would be missing")
        elif agreed is None or any(number not in agreed for number in range(epoch + 1, last + 1)):
            refused.append(f"sink '{name}' has come to epoch {last}, and the epoch log does not know the epochs after "
                           f"{epoch} any more: others would be taken for them, and skipped")
        else:
            notes.append(f"sink '{name}' has come to epoch {last}: what is done again up to there is skipped")
    return SinkMatch(tuple(begin), agreed is None, tuple(notes), tuple(refused))
