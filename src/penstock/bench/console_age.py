"""How old a console's page is, and how soon a command takes effect: of a topology that really runs."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.console.client import Client
from penstock.errors import DeliveryError
from penstock.runtime.state_folder import StateFolder

NAME = "live"
INTERVAL = 0.5
TOPOLOGY = f"""\
topology: {NAME}
epoch: {{interval: {INTERVAL * 1000:.0f}ms}}
sources:
  ticks: {{generator: {{id: sequence}}, rate: 100}}
sinks:
  out: {{from: ticks, file: out/rows.jsonl}}
"""
_LOOK_SECONDS = 0.01
_STILL_SECONDS = 4 * INTERVAL
"""No epoch for so long: it is frozen."""
_PATIENCE_SECONDS = 60.0
_COMMANDS = 5
_SLOW = 4 * INTERVAL
"""The interval that is given to see when it holds."""

Moments = Sequence[tuple[float, int]]
"""Times, each with the epoch that was reached then; in order."""


@dataclass
class Reached:
    """When each epoch of a topology was done, read from its own state many times a second; from `start` to `stop`."""

    state: StateFolder
    moments: list[tuple[float, int]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._look_until_over, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def await_epoch(self, beyond: int) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.moments or self.moments[-1][1] <= beyond:
            if time.monotonic() > deadline:
                raise DeliveryError(f"the topology '{NAME}' has not come beyond epoch {beyond} in "
                                    f"{_PATIENCE_SECONDS:.0f} s")  # fmt: skip
            time.sleep(_LOOK_SECONDS)

    def await_stillness(self, patience: float = _PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + patience
        while time.time() - self.moments[-1][0] < _STILL_SECONDS:
            if time.monotonic() > deadline:
                raise DeliveryError(f"the topology '{NAME}' was told to freeze, and still does epochs {patience:g} s "
                                    f"later: the last is {self.moments[-1][1]}")  # fmt: skip
            time.sleep(_LOOK_SECONDS)

    def await_end(self) -> None:
        """Until nobody runs it any more, and its last epoch is among the moments."""
        _await(lambda: self.state.running() is None, f"the topology '{NAME}' has not ended")
        _await(lambda: self.moments[-1][1] == self.state.furthest().committed().epoch, "its last epoch was not seen")

    def _look_until_over(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            epoch = self.state.furthest().committed().epoch
            if epoch and (not self.moments or epoch > self.moments[-1][1]):
                self.moments.append((time.time(), epoch))


def worst_age(reached: Moments, shown: Moments) -> float:
    """Seconds for which a page at worst still showed an epoch although the next one was done.

    What is shown stays until something newer is: the age counts until then, not when it came.
    """
    worst = 0.0
    for (_, epoch), (until, _) in pairwise(shown):
        missed = next((done for done, later in reached if later > epoch), None)
        if missed is not None:
            worst = max(worst, until - missed)
    return worst


def shown_on_page(url: str, seconds: float) -> list[tuple[float, int]]:
    """What a page about the topology is told, as it comes: up to which epoch its figures count."""
    shown = []
    until = time.monotonic() + seconds
    with urllib.request.urlopen(f"{url}/api/stream?topology={NAME}", timeout=_PATIENCE_SECONDS) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                told: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                shown.append((time.time(), int(told["counted"])))
            if time.monotonic() > until:
                break
    return shown


@dataclass(frozen=True)
class Effect:
    """How soon a command takes effect, at worst."""

    seconds: float
    """Until the last epoch that was as before it; of an `unfreeze`, until the next epoch."""
    epochs: int
    """How many epochs were still as before it: the one in flight is."""


NOTHING_YET = Effect(0.0, 0)


def measure_commands(client: Client, reached: Reached) -> dict[str, Effect]:
    """By command, some times each; the topology is stopped at the end, once."""
    found = dict.fromkeys(("freeze", "unfreeze", "interval"), NOTHING_YET)
    for _ in range(_COMMANDS):
        frozen = frozen_after(reached.moments, _given(client, "freeze", reached.await_stillness))
        last = reached.moments[-1][1]
        given = _given(client, "unfreeze", lambda last=last: reached.await_epoch(last))  # type: ignore[misc]
        goes_on = Effect(next(when for when, epoch in reached.moments if epoch > last) - given, 0)
        slowed = _slowed(client, reached)
        for verb, effect in (("freeze", frozen), ("unfreeze", goes_on), ("interval", slowed)):
            found[verb] = worse(found[verb], effect)
    return {**found, "stop": frozen_after(reached.moments, _given(client, "stop", reached.await_end))}


def _slowed(client: Client, reached: Reached) -> Effect:
    """Have epochs come more slowly, and then as before again."""
    seen: list[Effect] = []

    def is_slow() -> bool:
        seen[:] = filter(None, [slowed_after(reached.moments, given)])
        return bool(seen)

    given = _given(client, "interval", lambda: None, interval=f"{_SLOW:g}s")
    _await(is_slow, f"the topology '{NAME}' has not become slower")
    last = reached.moments[-1][1]
    _given(client, "interval", lambda: reached.await_epoch(last + 1), interval="default")
    return seen[0]


def slowed_after(reached: Moments, given: float) -> Effect | None:
    """What still came at the old pace after a longer interval that was given then; None while all does."""
    later = [when for when, _ in reached if when > given]
    for done, (when, following) in enumerate(pairwise(later), start=1):
        if following - when > (INTERVAL + _SLOW) / 2:
            return Effect(when - given, done)
    return None


def frozen_after(reached: Moments, given: float) -> Effect:
    """What was still done after a freeze, or a stop, that was given then."""
    later = [when for when, _ in reached if when > given]
    return Effect(max(later, default=given) - given, len(later))


def worse(one: Effect, other: Effect) -> Effect:
    return Effect(max(one.seconds, other.seconds), max(one.epochs, other.epochs))


def _given(client: Client, verb: str, wait: Callable[[], None], **arguments: str) -> float:
    """When the command was given; returns after its effect."""
    now = time.time()
    client.command(NAME, verb, **arguments)
    wait()
    return now


def _await(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise DeliveryError(f"{otherwise} in {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)


def write_topology(folder: Path) -> Path:
    folder.mkdir()
    (folder / "topology.yaml").write_text(TOPOLOGY)
    return folder
