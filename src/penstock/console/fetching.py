"""Where the files of a version are had from: this machine's home, or a master that has them."""

from __future__ import annotations

import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from penstock.console.api import is_loopback
from penstock.console.bundle import Fetch, check_bundle
from penstock.console.client import trusting, words_of
from penstock.console.home import ConsoleHome
from penstock.console.master import Candidate
from penstock.errors import BundleError, ConsoleError

_FETCH_SECONDS = 30.0


def fetch_from(
    home: ConsoleHome, masters: Callable[[], list[Candidate]], token: str = "", authority: Path | None = None
) -> Fetch:
    """Bundles from a home, or else from a master that has them; one that is not what was submitted is not taken.

    Raises ConsoleError for an authority that is none. What it returns raises OSError with what everybody has said,
    where nobody has the bundle: it may be tried again.
    """
    trusted = trusting(authority)

    def ask(master: Candidate, digest: str) -> bytes:
        if _is_out_of_reach(master):
            raise ConsoleError("it can be reached on its own machine only: start it with --host")
        request = urllib.request.Request(f"{master.url}/api/bundles/{digest}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=_FETCH_SECONDS, context=trusted) as answer:
                packed: bytes = answer.read()
                return packed
        except urllib.error.HTTPError as error:
            hint = "; give this one --token, an operator's" if error.code in (401, 403) else ""
            raise ConsoleError(words_of(error) + hint) from error

    def fetch(digest: str) -> bytes:
        said = []
        try:
            return check_bundle(home.bundle(digest).read_bytes(), digest)
        except FileNotFoundError:
            pass
        except (BundleError, OSError) as error:
            said.append(f"{home.bundle(digest)}: {error}")
        for master in masters():
            try:
                return check_bundle(ask(master, digest), digest)
            except (ConsoleError, OSError, HTTPException, ValueError) as error:
                said.append(f"{master.url}: {getattr(error, 'reason', error)}")
        # As what comes and goes: it is tried again.
        raise OSError("; ".join(said) or "no master is there to ask")

    return fetch


def _is_out_of_reach(master: Candidate) -> bool:
    """Whether its address means another machine here than there: who answers is not asked, and gets no token."""
    return is_loopback(urllib.parse.urlsplit(master.url).hostname or "") and master.host != socket.gethostname()
