"""A console from another process: what commands on the command line ask of it."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, IncompleteRead, InvalidURL
from pathlib import Path
from typing import Any

from penstock.errors import ConsoleError

DEFAULT_URL = "http://127.0.0.1:8470"
SETS = "Penstock-Sets"
"""The header with what is set for a topology, as a JSON list: proxies keep addresses in their logs."""
MOST_SETS = 50_000
"""A server reads no longer headers."""
_SECONDS = 120.0
_REPEATED_AFTER = (1.0, 2.0)
"""Seconds before a command whose answer was lost is given again, and once more."""
_OPEN = (500, 502, 504)
"""A console that broke over it, a gateway that has had no answer, a console that does not know what came of it."""


class NoAnswer(ConsoleError):
    """There is no console at an address."""


class AnswerLost(ConsoleError):
    """A command was sent, and nobody can say what came of it."""


@dataclass(frozen=True)
class Client:
    """The console at an address."""

    url: str = DEFAULT_URL
    token: str = ""
    certificate: Path | None = None
    """Of the authority that vouches for the console, where the system does not know it."""

    def get(self, path: str, **query: Any) -> Any:
        return self._read(self._ask("GET", path, query))

    def text(self, path: str, **query: Any) -> str:
        return self._ask("GET", path, query).decode(errors="replace")

    def command(self, name: str, verb: str, /, **arguments: Any) -> dict[str, Any]:
        """Give a command; where its answer is lost it is given again, and carried out once all the same.

        Raises AnswerLost where that does not help either: it may have been carried out then.
        """
        body = json.dumps({"verb": verb, **{key: value for key, value in arguments.items() if value is not None}})
        answer: dict[str, Any] = self._read(self._ask(
            "POST", f"/api/topologies/{urllib.parse.quote(name, safe='')}/commands", {}, body.encode(),
            "application/json", str(uuid.uuid4())))  # fmt: skip
        return answer

    def submit(self, packed: bytes, file: str, sets: Sequence[str], replace: bool, fresh: bool,
               spread: bool = False) -> dict[str, Any]:  # fmt: skip
        flags = {"replace": replace, "fresh": fresh, "spread": spread}
        query = {"file": file, **{name: str(flag).lower() for name, flag in flags.items()}}
        told = json.dumps(list(sets))
        if len(told) > MOST_SETS:
            raise ConsoleError(f"what is set is longer than {MOST_SETS:,} characters: put it into the topology's file")
        answer: dict[str, Any] = self._read(self._ask(
            "POST", "/api/topologies", query, packed, "application/octet-stream", str(uuid.uuid4()), told))  # fmt: skip
        return answer

    def remove(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._read(
            self._ask("DELETE", f"/api/topologies/{urllib.parse.quote(name, safe='')}", {}, key=str(uuid.uuid4()))
        )
        return answer

    def _read(self, told: bytes) -> Any:
        try:
            return json.loads(told)
        except ValueError:
            raise NoAnswer(f"what answers at {self.url} is no console: say where it is with --at") from None

    def _ask(self, method: str, path: str, query: Mapping[str, Any], body: bytes | None = None, kind: str = "",
             key: str = "", sets: str = "") -> bytes:  # fmt: skip
        """The answer; raises ConsoleError with what the console said, or why it said nothing."""
        words = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        headers = {"Authorization": f"Bearer {self.token}" if self.token else "", "Content-Type": kind,
                   "Idempotency-Key": key, SETS: sets}  # fmt: skip
        trusted = trusting(self.certificate)

        def send() -> bytes:
            request = urllib.request.Request(f"{self.url.rstrip('/')}{path}{'?' + words if words else ''}", body,
                                             {name: value for name, value in headers.items() if value},
                                             method=method)  # fmt: skip
            with urllib.request.urlopen(request, timeout=_SECONDS, context=trusted) as answer:
                told: bytes = answer.read()
                return told

        return self._answered(send, has_key=bool(key))

    def _answered(self, send: Callable[[], bytes], has_key: bool) -> bytes:
        """What has a key is carried out once: it is sent again where it was sent and no whole answer came."""
        lost: object = None
        for pause in (0.0, *(_REPEATED_AFTER if has_key else ())):
            time.sleep(pause)
            try:
                return send()
            except urllib.error.HTTPError as error:
                said = words_of(error)
                if not (has_key and _leaves_open(error.code, repeated=lost is not None)):
                    raise ConsoleError(said) from None
                lost = said
            except (urllib.error.URLError, InvalidURL, ValueError) as error:
                # It was not sent, or not wholly.
                if lost is None:
                    raise NoAnswer(f"no console answers at {self.url} ({getattr(error, 'reason', error)}): start one "
                                   "with `penstock up`, or say where it is with --at") from None  # fmt: skip
            except (OSError, HTTPException) as error:
                lost = error
                if isinstance(error, TimeoutError):
                    # Who waits for so long is not to wait as long again.
                    break
        if not has_key:
            raise NoAnswer(f"what answers at {self.url} gave no whole answer ({lost}): try again, or say where the "
                           "console is with --at")  # fmt: skip
        raise AnswerLost(f"the answer of the console at {self.url} was lost ({lost}): it may have been done; look at "
                         "`penstock events` before you give it again")  # fmt: skip


def _leaves_open(code: int, repeated: bool) -> bool:
    """Whether a refusal does not say that nothing was done: who refuses a second time may not know of the first."""
    return code in _OPEN or (repeated and (code == 429 or code >= 500))


def trusting(authority: Path | None) -> ssl.SSLContext | None:
    """Whom to believe that it is the console; None: whom this machine believes. Raises ConsoleError."""
    try:
        return None if authority is None else ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise ConsoleError(f"--authority {authority} cannot be used: {error.strerror or error}; give the certificate "
                           "of who vouches for the console, as PEM") from error  # fmt: skip


def words_of(error: urllib.error.HTTPError) -> str:
    """What a console says to what it refuses."""
    try:
        text = error.read().decode(errors="replace")
    except IncompleteRead as cut:
        text = cut.partial.decode(errors="replace")
    except (OSError, HTTPException):
        text = ""
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the console answered {error.code}: {text[:200]}"
