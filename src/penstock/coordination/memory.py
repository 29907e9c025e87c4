"""A coordinator for one process: the in-memory twin used by unit tests."""

from __future__ import annotations

import threading


class MemoryCoordinator:
    """Entries in a dict, safe for threads."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self._lock = threading.Lock()

    def create_if_absent(self, key: str, value: str) -> str:
        with self._lock:
            return self._entries.setdefault(key, value)

    def get(self, key: str) -> str | None:
        return self._entries.get(key)

    def list(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(key for key in self._entries if key.startswith(prefix))

    def delete(self, key: str) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def close(self) -> None:
        """Nothing to let go of."""
