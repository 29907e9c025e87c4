"""Siblings that fell silent in the middle of a transaction and hold what this one waits for, at PostgreSQL.

A replica that is frozen, or whose machine is gone without a word, keeps its locks until its connection ends. The
server knows that it waits for them to speak; whoever needs the lock has the server end their connection. A
sibling that was only slow begins its transaction anew, and finds the epoch done.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, Engine, Row, text

SILENT_SECONDS = 0.5

_COPY_IS_SHOWN_SINCE = (14,)
_AWAITED = text("""
    SELECT activity.pid, activity.xact_start, activity.state_change, copied.bytes_processed
    FROM pg_stat_activity activity LEFT JOIN pg_stat_progress_copy copied ON copied.pid = activity.pid
    WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
      AND activity.application_name = current_setting('application_name')
      AND activity.application_name LIKE 'penstock %'
      AND activity.xact_start IS NOT NULL AND activity.wait_event = 'ClientRead'
""")
"""Transactions of the same topology whose next word the server waits for, and how far each one is."""


def end_silent_siblings(engine: Engine) -> None:
    """End the connections of siblings whose transactions have stood still for `SILENT_SECONDS`."""
    with engine.connect() as connection:
        if (connection.dialect.server_version_info or ()) < _COPY_IS_SHOWN_SINCE:
            return
        before = _awaited(connection)
        if not before:
            return
        time.sleep(SILENT_SECONDS)
        for sibling in before & _awaited(connection):
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": sibling.pid})


def _awaited(connection: Connection) -> set[Row[tuple[int, object, object, object]]]:
    found = set(connection.execute(_AWAITED))
    # The next look is to see what is then, not what this transaction has seen.
    connection.rollback()
    return found
