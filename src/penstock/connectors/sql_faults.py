"""What a database's errors mean: whether waiting may help, and what to tell the user."""

from __future__ import annotations

import re

from sqlalchemy.exc import DBAPIError

from penstock.connectors.sql_address import without_secrets

_TRANSIENT_CLASSES = ("08", "53", "57P")
"""SQLSTATE: connection, resources (too many connections, disk full), shut down or starting."""
_LOCK_NOT_AVAILABLE = "55P03"
_TRANSIENT_STATES = ("40001", "40P01", _LOCK_NOT_AVAILABLE)
"""Serialization failure, deadlock, lock not available."""

_ADVICE = (
    ("password authentication failed", "correct the user name or password in the address"),
    ("no password supplied", "give the password in the address or in the variable PGPASSWORD"),
    (r'^role ".*" does not exist', "correct the user name, or create that role"),
    (r'^database ".*" does not exist', "create the database, or correct its name in the address"),
    ("connection refused", "start the server, or correct host and port in the address"),
    ("could not translate host name", "correct the host in the address"),
    ("failed to resolve host", "correct the host in the address"),
    ("timeout", "see whether the server can be reached from here"),
    ("permission denied", "grant the user the right to create and write its tables"),
    ("database is locked", "another program holds it for writing; end that one"),
    ("unable to open database file", "see whether the file and its folder may be written"),
    ("readonly database", "change the permissions of the file and of its folder"),
    ("file is not a database", "choose another file; this one is something else"),
    ("disk is full", "free some space, or choose another disk"),
    ("no space left", "free some space on the server"),
    ("duplicate key|unique constraint", "let the table have no such constraint, or use mode: upsert with that key"),
    ("invalid byte sequence", "PostgreSQL's text cannot hold the character NUL: replace it before the sink"),
)
"""What to look for in a message in lower case, and what to do; the first that fits."""


def cause_of(error: BaseException) -> BaseException:
    """The driver's own error inside SQLAlchemy's, whose text would repeat statement and values."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction may succeed on a new connection, after a while.

    SQLite is not there or gone: a file that cannot be written stays so, and for locks it waits itself.
    """
    cause = cause_of(error)
    if not type(cause).__module__.startswith("psycopg"):
        return False
    state = getattr(cause, "sqlstate", None)
    if state is None:
        return any(base.__name__ in ("OperationalError", "InterfaceError") for base in type(cause).__mro__)
    return state.startswith(_TRANSIENT_CLASSES) or state in _TRANSIENT_STATES


def lock_was_held(error: BaseException) -> bool:
    """Whether PostgreSQL gave up waiting for a lock that somebody else holds."""
    return getattr(cause_of(error), "sqlstate", None) == _LOCK_NOT_AVAILABLE


def explain(error: BaseException, url: str) -> str:
    """What the database said in one line, without secrets, and what to do where that is known."""
    cause = cause_of(error)
    said = without_secrets(_last_words(str(cause)) + _context(cause), url)
    lower = said.lower()
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, lower)), "")
    return f"{said}: {advice}" if advice else said


def _last_words(text: str) -> str:
    """The first line of a driver's message without its preamble and trailing hints."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    for preamble in ("FATAL:", "ERROR:"):
        _, found, rest = line.partition(preamble)
        line = rest.strip() if found else line
    if line.startswith(("connection failed:", "connection is bad:")):
        line = line.rsplit(" failed: ", 1)[-1]
    return line.rstrip(".")


def _context(cause: BaseException) -> str:
    """Where in the rows PostgreSQL stumbled, if it says so."""
    context = getattr(getattr(cause, "diag", None), "context", None)
    return f" ({context.splitlines()[0][:200]})" if context else ""
