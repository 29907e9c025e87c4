"""A coordinator for one process: the in-memory twin used by tests, with faults on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.coordination.base import Watch, check_entry
from penstock.coordination.watches import Watches
from penstock.errors import CoordinationError


@dataclass
class _Entry:
    value: str
    owner: MemoryCoordinator | None = None
    """Whose session it goes with, if it is ephemeral."""


@dataclass
class MemoryStore:
    """What several MemoryCoordinators share, each with a session of its own."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    away: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)
    coordinators: list[MemoryCoordinator] = field(default_factory=list)

    def go_away(self) -> None:
        """From now on every use raises CoordinationError; entries and sessions stay."""
        self.away = True

    def come_back(self) -> None:
        self.away = False

    def expire(self, coordinator: MemoryCoordinator) -> None:
        """End the session of one coordinator as if it had given no sign of life."""
        self.end_session(coordinator)
        coordinator.watches.expired()

    def end_session(self, coordinator: MemoryCoordinator) -> None:
        with self.lock:
            for key in [key for key, entry in self.entries.items() if entry.owner is coordinator]:
                del self.entries[key]
                self.changed(key)

    def changed(self, key: str) -> None:
        for coordinator in self.coordinators:
            coordinator.watches.changed(key)


class MemoryCoordinator:
    """Entries in a dict, safe for threads. See `base.Coordinator` for the contract."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.watches = Watches()
        self._closed = False
        with self.store.lock:
            self.store.coordinators.append(self)

    def create_if_absent(self, key: str, value: str) -> str:
        return self._create(key, _Entry(value))

    def create_ephemeral(self, key: str, value: str) -> str:
        return self._create(key, _Entry(value, self))

    def _create(self, key: str, entry: _Entry) -> str:
        check_entry(key, entry.value)
        with self._entries() as entries:
            if key not in entries:
                entries[key] = entry
                self.store.changed(key)
            return entries[key].value

    def put(self, key: str, value: str) -> None:
        check_entry(key, value)
        with self._entries() as entries:
            entries.setdefault(key, _Entry(value)).value = value
            self.store.changed(key)

    def replace(self, key: str, expected: str, value: str) -> bool:
        check_entry(key, value)
        with self._entries() as entries:
            if key not in entries or entries[key].value != expected:
                return False
            entries[key].value = value
            self.store.changed(key)
            return True

    def get(self, key: str) -> str | None:
        with self._entries() as entries:
            return entries[key].value if key in entries else None

    def list(self, prefix: str) -> list[str]:
        with self._entries() as entries:
            return sorted(key for key in entries if key.startswith(prefix))

    def entries(self, prefix: str) -> dict[str, str]:
        with self._entries() as entries:
            return {key: entries[key].value for key in sorted(entries) if key.startswith(prefix)}

    def delete(self, key: str) -> None:
        with self._entries() as entries:
            if entries.pop(key, None) is not None:
                self.store.changed(key)

    def watch(self, prefix: str, callback: Callable[[], None]) -> Watch:
        with self._entries():
            return self.watches.add(prefix, callback)

    def on_expired(self, callback: Callable[[], None]) -> None:
        self.watches.add_expired(callback)

    def close(self) -> None:
        with self.store.lock:
            if not self._closed:
                self._closed = True
                self.store.coordinators.remove(self)
                self.store.end_session(self)
        self.watches.close()

    @contextmanager
    def _entries(self) -> Iterator[dict[str, _Entry]]:
        with self.store.lock:
            if self._closed:
                raise CoordinationError("this coordinator is closed; open another")
            if self.store.away:
                raise CoordinationError("the coordinator in memory is away; call come_back() on its store")
            yield self.store.entries
