"""The last events of a console, as they are kept in its coordinator: whoever leads next tells the same. Pure.

One entry holds them all, and is written only when something has happened. All masters see what happens; the leader
writes it down, and the others hold back what they have seen until they know that it was. `Watching` reads and writes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from penstock.console.events import Event, subject

ENTRY = "console/events"
KEPT = 300
_LONGEST_WORDS = 240
"""So that all of them fit into one entry, in whatever script they are."""
_HELD_SECONDS = 15.0
"""Longer than it takes a standby to lead."""


@dataclass(frozen=True)
class Draft:
    """What is to be written."""

    expected: str | None
    """What the entry should hold now."""
    text: str
    events: list[Event]
    held: list[tuple[Event, float]]
    """What of it was held back."""


class EventLog:
    """The events, as one master knows them; for one thread at a time."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._has_read = False
        self._known: list[Event] = []
        self._held: deque[tuple[Event, float]] = deque(maxlen=KEPT)
        """What this one has seen and nobody has written down, and since when."""
        self._ahead: deque[tuple[Event, float]] = deque(maxlen=KEPT)
        """What was written down and this one has not seen yet, and since when."""

    def events(self, leading: bool) -> list[Event]:
        """Those that were written down, the oldest first; who leads is about to write the rest."""
        return [*self._known, *((event for event, _ in self._held) if leading else ())]

    def hold(self, seen: Iterable[Event], now: float, first_look: bool = False) -> None:
        """What this master has seen; at its first look at a topology only what was not told before."""
        for event in map(_shortened, seen):
            if not _take_out(self._ahead, event) and not (first_look and self._was_told(event)):
                self._held.append((event, now))

    def _was_told(self, event: Event) -> bool:
        """Whether the newest that was told about the same is the same."""
        about = subject(event)
        alike = (told for told in reversed(self.events(leading=True))
                 if told.topology == event.topology and subject(told) == about)  # fmt: skip
        return next((told.words for told in alike), "") == event.words

    def add(self, event: Event, now: float) -> None:
        """What only this master knows: a command."""
        self._held.append((_shortened(event), now))

    def take_in(self, text: str | None, now: float) -> None:
        """What the entry holds."""
        if self._has_read and text == self._text:
            return
        newest = self._known[-1].number if self._known else 0
        self._known = [] if text is None else [Event(**fields) for fields in json.loads(text)]
        for event in self._known if self._has_read else ():
            if event.number > newest and not _take_out(self._held, event):
                self._ahead.append((event, now))
        self._text, self._has_read = text, True

    def forget(self, now: float, leading: bool) -> None:
        """Who does not lead forgets in time what the leader has not written down: it has seen it otherwise."""
        for each in (self._ahead,) if leading else (self._ahead, self._held):
            while each and each[0][1] < now - _HELD_SECONDS:
                each.popleft()

    def draft(self) -> Draft | None:
        """What was held back, and all before; None when there is nothing new."""
        if not self._held:
            return None
        number = self._known[-1].number if self._known else 0
        added = [replace(event, number=number + step) for step, (event, _) in enumerate(self._held, 1)]
        events = [*self._known, *added][-KEPT:]
        return Draft(self._text, json.dumps([asdict(event) for event in events]), events, list(self._held))

    def written(self, draft: Draft) -> None:
        """The entry holds the draft now; what was held back since then still is."""
        self._text, self._known = draft.text, draft.events
        for each in draft.held:
            with suppress(ValueError):
                self._held.remove(each)


def _take_out(held: deque[tuple[Event, float]], event: Event) -> bool:
    """Whether the same was among them; it is not any more."""
    for each in held:
        if (each[0].topology, each[0].words) == (event.topology, event.words):
            held.remove(each)
            return True
    return False


def _shortened(event: Event) -> Event:
    words = event.words
    return event if len(words) <= _LONGEST_WORDS else replace(event, words=f"{words[: _LONGEST_WORDS - 1]}…")
