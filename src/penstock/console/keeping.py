"""Every master keeps the bundles of all topologies that are wanted: no code is lost with the one that took it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.console.bundle import Fetch
from penstock.console.desired import Desired
from penstock.console.home import ConsoleHome
from penstock.coordination.base import Coordinator
from penstock.errors import CoordinationError

_KEPT = "console/kept/"
_LOOK_SECONDS = 5.0
"""Where nothing has changed: what could not be copied is tried again."""
_STOP_SECONDS = 1.0
_TIDY_SECONDS = 3600.0


class Keepers:
    """Which master has which bundles, as each has told."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def tell(self, master: str, digests: set[str]) -> None:
        self._coordinator.put(_KEPT + master, json.dumps(sorted(digests)))

    def of(self, master: str) -> set[str]:
        text = self._coordinator.get(_KEPT + master)
        return set() if text is None else set(json.loads(text))

    def forget(self, master: str) -> None:
        self._coordinator.delete(_KEPT + master)


class Keeping:
    """One master's, leading or not, from `start` to `stop`."""

    def __init__(self, master: str, home: ConsoleHome, coordinator: Coordinator, fetch: Fetch,
                 say: Callable[[str], None] = lambda _: None) -> None:  # fmt: skip
        """`fetch` has a bundle from another master; `say` is told why one could not be had, once."""
        self._master = master
        self._home = home
        self._coordinator = coordinator
        self._desired = Desired(coordinator)
        self._keepers = Keepers(coordinator)
        self._fetch = fetch
        self._say = say
        self._said = ""
        self._tidy_at = 0.0
        """When to look next for files that nobody wants."""
        self._over = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="penstock-bundles", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._wake.set()
        if self._thread is not None:
            # Not for one that waits for another master.
            self._thread.join(_STOP_SECONDS)
        with suppress(CoordinationError):
            self._keepers.forget(self._master)

    def look(self) -> None:
        """Copy what is wanted and not here; raises CoordinationError."""
        wanted = {each.digest for each in self._desired.all()}
        troubles = [said for digest in sorted(wanted) if (said := self._copy(digest))]
        self._tell("; ".join(troubles))
        kept = {digest for digest in wanted if self._home.bundle(digest).exists()}
        # Not what it has told itself: who was frozen for long is taken for dead, and what it has told is forgotten.
        changed = kept != self._keepers.of(self._master)
        if changed:
            self._keepers.tell(self._master, kept)
        if changed or time.monotonic() >= self._tidy_at:
            self._home.forget_bundles(wanted)
            self._tidy_at = time.monotonic() + _TIDY_SECONDS

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self._said:
            self._say(trouble)
        self._said = trouble

    def _copy(self, digest: str) -> str:
        """Have a bundle here; what to say where that is not possible now."""
        if self._home.bundle(digest).exists():
            return ""
        try:
            self._home.keep_bundle(digest, self._fetch(digest))
        except OSError as error:
            return f"the files of version {digest[:12]} could not be copied: {error}"
        return ""

    def _run(self) -> None:
        with suppress(CoordinationError):
            self._desired.watch(self._wake.set)
        while not self._over.is_set():
            try:
                self.look()
            except CoordinationError:
                # Away: it is looked again.
                pass
            except OSError as error:
                self._tell(f"bundles cannot be kept: {error}")
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()
