"""The address of a database as users write it, and how it is shown without its secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from penstock.connectors.base import Place
from penstock.errors import TopologyError

SQLITE, POSTGRESQL = "sqlite", "postgresql"
DRIVERS = {SQLITE: "sqlite+pysqlite", POSTGRESQL: "postgresql+psycopg"}

_EXAMPLES = "for example sqlite:///out/results.db or postgresql://user:${env:PW}@host/database"


@dataclass(frozen=True)
class Address:
    """A database: for the driver, and for messages."""

    url: str
    shown: str
    system: str
    """`sqlite` or `postgresql`."""
    file: Path | None = None
    """The file of an SQLite database."""


def read_address(place: Place, written: object) -> Address:
    """The database that `written` names; raises TopologyError that never repeats a password."""
    url = _parsed(place.name, written)
    system, _, driver = url.drivername.partition("+")
    system = POSTGRESQL if system == "postgres" else system
    if system not in DRIVERS:
        raise TopologyError(f"sink '{place.name}': sql writes to SQLite and PostgreSQL, not to {system}")
    if driver and f"{system}+{driver}" != DRIVERS[system]:
        raise TopologyError(f"sink '{place.name}': sql uses the driver of its own choice: write {system}:// "
                            f"instead of {url.drivername}://")
    url = url.set(drivername=DRIVERS[system])
    if system == SQLITE:
        return _sqlite(place, url)
    if "@" in (url.host or ""):
        raise TopologyError(f"sink '{place.name}': a password with '@' must be percent-encoded in the address "
                            "('@' is %40), or left out of it and given in the variable PGPASSWORD")
    shown = url.set(drivername=POSTGRESQL, query={}).render_as_string(hide_password=True)
    return Address(url.render_as_string(hide_password=False), shown, system)


def without_secrets(text: str, address: str) -> str:
    """`text` with the password of `address` blotted out, however it is spelled."""
    url = make_url(address)
    queried = url.query.get("password")
    secrets = {str(secret) for secret in (url.password, queried) if secret}
    spellings = {spelled for secret in secrets for spelled in (secret, quote(secret, safe=""), quote_plus(secret))}
    for spelled in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelled, "***")
    return text


def _parsed(sink: str, written: object) -> URL:
    if not isinstance(written, str) or not written.strip():
        raise TopologyError(f"sink '{sink}': sql needs the address of a database, {_EXAMPLES}")
    try:
        return make_url(written.strip())
    except (ArgumentError, ValueError):
        # What was written may hold a password: it is not repeated, and neither is the cause.
        raise TopologyError(f"sink '{sink}': that is not the address of a database; write one like this, "
                            f"{_EXAMPLES}") from None


def _sqlite(place: Place, url: URL) -> Address:
    if url.host or url.username:
        raise TopologyError(f"sink '{place.name}': SQLite is a file and has no host: write "
                            "sqlite:///path, with three slashes, or four before an absolute path")
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise TopologyError(f"sink '{place.name}': sql needs a database file, for example sqlite:///out/"
                            f"{place.name}.db")
    file = place.resolve(url.database)
    full = url.set(database=str(file), query={})
    return Address(full.render_as_string(hide_password=False), f"{SQLITE}:///{url.database}", SQLITE, file)
