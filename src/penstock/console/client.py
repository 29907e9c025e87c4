"""A console from another process: what commands on the command line ask of it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import ConsoleError

DEFAULT_URL = "http://127.0.0.1:8470"
SETS = "Penstock-Sets"
"""The header with what is set for a topology, as a JSON list: proxies keep addresses in their logs."""
MOST_SETS = 50_000
"""A server reads no longer headers."""
_SECONDS = 120.0


class NoAnswer(ConsoleError):
    """There is no console at an address."""


@dataclass(frozen=True)
class Client:
    """The console at an address."""

    url: str = DEFAULT_URL
    token: str = ""
    certificate: Path | None = None
    """Of the authority that vouches for the console, where the system does not know it."""

    def get(self, path: str, **query: Any) -> Any:
        return json.loads(self._ask("GET", path, query))

    def text(self, path: str, **query: Any) -> str:
        return self._ask("GET", path, query).decode()

    def command(self, name: str, verb: str, /, **arguments: Any) -> dict[str, Any]:
        """Give a command; it is carried out once, however often the way there fails."""
        body = json.dumps({"verb": verb, **{key: value for key, value in arguments.items() if value is not None}})
        answer: dict[str, Any] = json.loads(self._ask(
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
        answer: dict[str, Any] = json.loads(self._ask(
            "POST", "/api/topologies", query, packed, "application/octet-stream", str(uuid.uuid4()), told))  # fmt: skip
        return answer

    def remove(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            self._ask("DELETE", f"/api/topologies/{urllib.parse.quote(name, safe='')}", {}, key=str(uuid.uuid4()))
        )
        return answer

    def _ask(self, method: str, path: str, query: Mapping[str, Any], body: bytes | None = None, kind: str = "",
             key: str = "", sets: str = "") -> bytes:  # fmt: skip
        """The answer; raises ConsoleError with what the console said, or why it said nothing."""
        words = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        request = urllib.request.Request(f"{self.url.rstrip('/')}{path}{'?' + words if words else ''}", body,
                                         method=method)  # fmt: skip
        for name, value in (("Authorization", f"Bearer {self.token}" if self.token else ""), ("Content-Type", kind),
                            ("Idempotency-Key", key), (SETS, sets)):  # fmt: skip
            if value:
                request.add_header(name, value)
        trusted = trusting(self.certificate)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=trusted) as answer:
                told: bytes = answer.read()
                return told
        except urllib.error.HTTPError as error:
            raise ConsoleError(words_of(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NoAnswer(
                f"no console answers at {self.url} ({reason}): start one with `penstock up`, or say where it is with "
                "--at"
            ) from None


def trusting(authority: Path | None) -> ssl.SSLContext | None:
    """Whom to believe that it is the console; None: whom this machine believes. Raises ConsoleError."""
    try:
        return None if authority is None else ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise ConsoleError(f"--authority {authority} cannot be used: {error.strerror or error}; give the certificate "
                           "of who vouches for the console, as PEM") from error  # fmt: skip


def words_of(error: urllib.error.HTTPError) -> str:
    """What a console says to what it refuses."""
    text = error.read().decode(errors="replace")
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the console answered {error.code}: {text[:200]}"
