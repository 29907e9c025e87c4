"""An election: of the candidates for a name, one leads, and another soon after it when it dies."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.coordination.base import SESSION_TTL_SECONDS, Coordinator
from penstock.coordination.lease import Holding, Lease
from penstock.errors import CoordinationError

_RENEWALS_PER_TTL = 4
_LOOKS_PER_TTL = 10
"""How often a candidate that does not lead looks, even if no watch wakes it."""


class Election:
    """One candidate, or an onlooker who never campaigns.

    Entries: `elections/NAME/leader` is the lease, `elections/NAME/candidates/CANDIDATE` are ephemeral.
    """

    def __init__(
        self, coordinator: Coordinator, name: str, candidate: str = "", ttl: float = SESSION_TTL_SECONDS
    ) -> None:
        """A candidate's name may be used by one process at a time. All give the same `ttl`, in seconds."""
        self._coordinator = coordinator
        self._folder = f"elections/{name}/"
        self._candidate = candidate
        self._entry = f"{self._folder}candidates/{candidate}"
        self._lease = Lease(coordinator, f"{self._folder}leader", candidate, ttl)
        self._look_again = threading.Event()
        self._resigned = threading.Event()
        self._thread: threading.Thread | None = None

    def leader(self) -> str | None:
        """The name of the candidate that leads; None while there is none, or it has died."""
        text = self._coordinator.get(self._lease.key)
        holder = None if text is None else Holding.from_json(text).holder
        return holder if holder is not None and holder in self.candidates() else None

    def candidates(self) -> list[str]:
        """The names of all who campaign and live, in order."""
        prefix = f"{self._folder}candidates/"
        return [key.removeprefix(prefix) for key in self._coordinator.list(prefix)]

    @property
    def leading(self) -> bool:
        """Whether this candidate certainly leads now; ask before everything that only the leader may do."""
        return self._lease.held

    @property
    def term(self) -> int:
        """The number of this candidate's last leadership: later leaders have higher ones."""
        return self._lease.term

    def campaign(self, changed: Callable[[bool], None] = lambda _: None) -> None:
        """Stand for election until `resign`, from a thread of its own; returns at once.

        `changed` is called from that thread with True when this candidate begins to lead and with False
        when it leads no more: resigned, beaten, frozen too long, or cut off from the coordinator. It should
        be brief, for nobody renews meanwhile.
        """
        if self._thread is not None:
            raise CoordinationError(f"'{self._candidate}' campaigns already; resign first")
        watch = self._coordinator.watch(self._lease.key, self._look_again.set)

        def run() -> None:
            try:
                self._run(changed)
            finally:
                watch.cancel()

        self._resigned.clear()
        self._thread = threading.Thread(target=run, name=f"penstock-election-{self._candidate}", daemon=True)
        self._thread.start()

    def resign(self) -> None:
        """Stand no more; another candidate may lead at once. Never raises: at worst the lease runs out."""
        if self._thread is not None:
            self._resigned.set()
            self._look_again.set()
            self._thread.join()
            self._thread = None

    def _run(self, changed: Callable[[bool], None]) -> None:
        led = False
        try:
            while not self._resigned.is_set():
                with suppress(CoordinationError):
                    self._register()
                    self._lease.acquire()
                if self._lease.held != led:
                    led = not led
                    changed(led)
                self._pause(led)
        finally:
            with suppress(CoordinationError):
                self._lease.release()
            with suppress(CoordinationError):
                self._coordinator.delete(self._entry)
        if led:
            changed(False)

    def _register(self) -> None:
        # Looked at every time: the entry goes with a lost session, and so does one left by an earlier process.
        if self._coordinator.get(self._entry) is None:
            self._coordinator.create_ephemeral(self._entry, "")

    def _pause(self, leading: bool) -> None:
        if leading:
            # The leader's own renewals set off the watch: it must not wake for them.
            self._resigned.wait(self._lease.ttl / _RENEWALS_PER_TTL)
        else:
            self._look_again.wait(self._lease.ttl / _LOOKS_PER_TTL)
            self._look_again.clear()
