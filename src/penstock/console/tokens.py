"""Who may look, and who may command: tokens with a role, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from enum import StrEnum

from penstock.coordination.base import Coordinator

_TOKENS = "console/tokens/"
_FORM = re.compile(r"pst_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NEVER = "0" * 64


class Role(StrEnum):
    """What a token allows."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    """Also to command, and to submit code."""


@dataclass(frozen=True)
class Person:
    """Who is asking."""

    name: str
    role: Role


@dataclass(frozen=True)
class Token:
    """What is kept of a token."""

    id: str
    name: str
    role: Role
    digest: str
    created: float
    expires: float | None = None

    @property
    def expired(self) -> bool:
        return self.expires is not None and self.expires <= time.time()


class Tokens:
    """The tokens of a console."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def create(self, name: str, role: Role, seconds: float | None = None) -> str:
        """A new token, which nobody can be told a second time."""
        key, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        now = time.time()
        token = Token(key, name, role, _digest(secret), now, None if seconds is None else now + seconds)
        self._coordinator.put(_TOKENS + key, json.dumps(asdict(token)))
        return f"pst_{key}_{secret}"

    def check(self, text: str) -> Token | None:
        """The token that `text` is, also one that has expired; None when there is no such token."""
        form = _FORM.fullmatch(text)
        kept = self._get(form[1]) if form else None
        # As long for a wrong token as for a right one.
        same = hmac.compare_digest(_digest(form[2] if form else ""), kept.digest if kept else _NEVER)
        return kept if same else None

    def all(self) -> list[Token]:
        found = (self._get(key.removeprefix(_TOKENS)) for key in self._coordinator.list(_TOKENS))
        return sorted((token for token in found if token is not None), key=lambda token: token.created)

    def revoke(self, key: str) -> bool:
        """Have a token allow nothing any more; False when there is no such token."""
        known = self._get(key) is not None
        if known:
            self._coordinator.delete(_TOKENS + key)
        return known

    def _get(self, key: str) -> Token | None:
        text = self._coordinator.get(_TOKENS + key)
        if text is None:
            return None
        fields = json.loads(text)
        return Token(**{**fields, "role": Role(fields["role"])})


def _digest(secret: str) -> str:
    # The secret is random and long: nothing is gained by a slow digest.
    return hashlib.sha256(secret.encode()).hexdigest()
