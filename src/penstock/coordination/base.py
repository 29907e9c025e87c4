"""The contract of a coordinator: a few entries that are written once and that every process sees."""

from __future__ import annotations

from typing import Protocol


class Coordinator(Protocol):
    """Entries by key. All methods raise CoordinationError when the coordinator cannot be reached."""

    def create_if_absent(self, key: str, value: str) -> str:
        """Write `value` unless the key exists; return what the key holds now. The first writer wins."""

    def get(self, key: str) -> str | None:
        """What the key holds, or None."""

    def list(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix`, in order."""

    def delete(self, key: str) -> None:
        """Remove a key; nothing happens if it is not there."""

    def close(self) -> None:
        """Let go of the connection."""
