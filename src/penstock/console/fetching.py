"""Where the files of a version are had from: this machine's home, or a master that has them."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from penstock.console.api import is_loopback
from penstock.console.bundle import Fetch, check_bundle
from penstock.console.client import trusting, words_of
from penstock.console.home import ConsoleHome
from penstock.console.master import Candidate
from penstock.errors import BundleError, ConsoleError

_SILENCE_SECONDS = 5.0
"""After which a master that says nothing is given up for now."""
_WHOLE_SECONDS = 60.0
"""And after which one that has not sent all of it, however often it says something: then the next one is asked."""
_PIECE = 1_000_000


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
            with urllib.request.urlopen(request, timeout=_SILENCE_SECONDS, context=trusted) as answer:
                return _whole(answer)
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


def fetch_in_background(fetch: Fetch, digest: str, done: Callable[[], object]) -> Future[bytes]:
    """What `fetch` gives or raises, in a thread of its own, which ends with the process; `done` is called after it."""
    fetched = Future[bytes]()
    fetched.add_done_callback(lambda _: done())

    def run() -> None:
        try:
            fetched.set_result(fetch(digest))
        except Exception as error:
            fetched.set_exception(error)

    threading.Thread(target=run, name="penstock-fetch", daemon=True).start()
    return fetched


def _whole(answer: HTTPResponse) -> bytes:
    """All of an answer; raises TimeoutError where it takes too long, as the socket's patience is for each piece."""
    deadline, length = time.monotonic() + _WHOLE_SECONDS, answer.length
    found = bytearray()
    # Not until it ends: who sends it may keep the connection.
    while (length is None or len(found) < length) and (piece := answer.read1(_PIECE)):
        found += piece
        if time.monotonic() > deadline:
            raise TimeoutError(f"it had not sent all of it after {_WHOLE_SECONDS:g} s")
    return bytes(found)


def _is_out_of_reach(master: Candidate) -> bool:
    """Whether its address means another machine here than there: who answers is not asked, and gets no token."""
    return is_loopback(urllib.parse.urlsplit(master.url).hostname or "") and master.host != socket.gethostname()
