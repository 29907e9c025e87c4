"""A command is carried out once: whoever gives it again, with the same key, gets the first one's answer."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from penstock.console.audit import Given, Outcome
from penstock.console.masking import masked
from penstock.console.nodes import RESULTS_KEPT_SECONDS
from penstock.coordination.base import Coordinator
from penstock.errors import CommandRefused, ConsoleError, CoordinationError

_COMMANDS = "console/commands/"


class OutcomeUnknown(ConsoleError):
    """A command was begun, and nobody can say what came of it: it may have been done, or be done still."""


class KeyTaken(ConsoleError):
    """Another command was given with this key."""


class OncePerKey:
    """The commands of a console that had a key, for all its masters."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._lock = threading.Lock()
        self._known: dict[str, float] = {}
        """Since when they are known here."""

    def carry_out(self, key: str | None, given: Given, details: dict[str, Any], do: Callable[[], dict[str, Any]],
                  secrets: Sequence[str], sets: Sequence[str] = ()) -> dict[str, Any]:  # fmt: skip
        """Do it, and write down what came of it; what is said is without `secrets`, for it is kept for a while.

        `details` say what it is, and `sets` what of that is not to be written down. What is refused raises
        ConsoleError, and nothing was done: KeyTaken where the key is another command's. Once it was begun, a
        coordinator or disk that fails raises OutcomeUnknown. CoordinationError is of before: nothing was done then,
        either.
        """
        mine = {"by": uuid.uuid4().hex, "time": time.time(), "of": _digest(given, details, sets)}
        if key is not None:
            self._forget_old()
            held = json.loads(self._coordinator.create_if_absent(_COMMANDS + key, json.dumps(mine)))
            if held.get("of", mine["of"]) != mine["of"]:
                said = f"another command was given with the key '{key}', and this one was not done: give it its own"
                given.ended(Outcome.REFUSED, said)
                raise KeyTaken(said)
            if held["by"] != mine["by"]:
                return _answered_before(held)

        def keep(**outcome: Any) -> None:
            if key is not None:
                # What came of it is known, and told. Who loses the answer is told that the outcome is not known.
                with suppress(CoordinationError):
                    self._coordinator.put(_COMMANDS + key, json.dumps({**mine, **outcome}))

        given.begun(**details)
        try:
            answer = do()
        except ConsoleError as refused:
            said, missing = masked(str(refused), secrets), isinstance(refused, CommandRefused) and refused.missing
            given.ended(Outcome.REFUSED, said)
            keep(refused=said, missing=missing)
            if isinstance(refused, CommandRefused):
                raise CommandRefused(said, missing) from None
            raise
        except Exception as error:
            said = masked(f"{type(error).__name__}: {error}", secrets)
            given.ended(Outcome.FAILED, said)
            if not isinstance(error, CoordinationError | OSError):
                # A mistake in the console itself, and nothing that may pass: it is to be seen as one.
                raise
            raise OutcomeUnknown(f"the outcome is not known ({said}): it may have been done; look at its events before "
                                 "you give it again") from error  # fmt: skip
        given.ended(Outcome.DONE if answer.get("done", True) else Outcome.PENDING, answer["said"],
                    answer.get("topology"))  # fmt: skip
        if given.unwritten:
            answer["warning"] = "; ".join(filter(None, (answer.get("warning"), given.unwritten)))
        keep(answer=answer)
        return answer

    def _forget_old(self) -> None:
        """Those that this master has known for long: the clock of the one that wrote them may be hours off."""
        now, entries = time.monotonic(), self._coordinator.list(_COMMANDS)
        with self._lock:
            self._known = {entry: self._known.get(entry, now) for entry in entries}
            old = [entry for entry, since in self._known.items() if since < now - RESULTS_KEPT_SECONDS]
        for entry in old:
            self._coordinator.delete(entry)


def _digest(given: Given, details: dict[str, Any], sets: Sequence[str]) -> str:
    """Tells two commands apart, and nothing of what was set."""
    return sha256(json.dumps([given.what, given.topology, details, list(sets)], sort_keys=True).encode()).hexdigest()


def _answered_before(held: dict[str, Any]) -> dict[str, Any]:
    """What was answered when the same command was given first."""
    if "refused" in held:
        raise CommandRefused(held["refused"], held["missing"])
    unknown = {"done": False, "said": "it was given before, and its outcome is not known: look at its events"}
    answer: dict[str, Any] = held.get("answer", unknown)
    return answer
