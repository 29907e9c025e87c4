"""The contract of a coordinator: a few entries that every process sees, and that outlive all of them.

What is built on it, once for every implementation, is in `lease` and `election`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.errors import CoordinationError

SESSION_TTL_SECONDS = 5.0
"""How long a session outlives the last sign of life of its owner."""

MAX_VALUE_BYTES = 1_000_000
"""ZooKeeper takes no more than this; the others refuse it too, so that what works on one works on all."""


class Watch(Protocol):
    """A callback that waits for changes."""

    def cancel(self) -> None:
        """Call it no more; a call that is under way may still finish."""


class Coordinator(Protocol):
    """Entries by key, safe for threads; a forked process opens its own.

    Every method but `close` raises CoordinationError when the coordinator cannot be reached, within a few
    seconds. What was asked may have happened all the same: ask again, or look. The same object works again
    as soon as the coordinator does.
    """

    def create_if_absent(self, key: str, value: str) -> str:
        """Write `value` unless the key exists; return what the key holds now. The first writer wins."""

    def create_ephemeral(self, key: str, value: str) -> str:
        """As `create_if_absent`, but the entry goes when the session of this coordinator ends.

        A session begins by itself. It ends with `close`, with the death of its process, or when it gave no
        sign of life for its time to live. An entry that an earlier session left may still be there for so
        long: write values that no two sessions share, and the answer says whose entry it is.
        """

    def put(self, key: str, value: str) -> None:
        """Write `value`, whatever was there. An entry that was ephemeral stays so."""

    def replace(self, key: str, expected: str, value: str) -> bool:
        """Write `value` if the key holds `expected`; whether it did. Of many who try, one succeeds."""

    def get(self, key: str) -> str | None:
        """What the key holds, or None."""

    def list(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix`, in order."""

    def entries(self, prefix: str) -> dict[str, str]:
        """As `list`, each key with what it holds. They need not be of one moment."""

    def delete(self, key: str) -> None:
        """Remove a key; nothing happens if it is not there."""

    def watch(self, prefix: str, callback: Callable[[], None]) -> Watch:
        """Call `callback` after every change of an entry whose key begins with `prefix`.

        Several changes may be told by one call, and a call may come without a change, but after the last
        change there is always a call: watch first, then look. Calls come one at a time from a thread of the
        coordinator's own, where its methods may be used.
        """

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the session has expired: all ephemeral entries of this coordinator are gone.

        It is called once for each session that is lost, from the thread that serves watches, and not for
        `close`. The next `create_ephemeral` begins a new session.
        """

    def close(self) -> None:
        """End the session and let go of the connection. Never raises."""


def check_entry(key: str, value: str) -> None:
    """Raise CoordinationError for an entry that not every coordinator can hold."""
    if not key:
        raise CoordinationError("the coordinator was given an empty key; every entry needs a name")
    # Four bytes are the most a character takes: most values need no counting.
    if len(value) * 4 > MAX_VALUE_BYTES and (size := len(value.encode())) > MAX_VALUE_BYTES:
        raise CoordinationError(
            f"the coordinator cannot hold '{key}': its value has {size:,} bytes, and {MAX_VALUE_BYTES:,} are the most; "
            "keep large things in files and their names here"
        )
