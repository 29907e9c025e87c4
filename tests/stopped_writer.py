"""A process that holds an SQLite file for writing, to be stopped in the middle of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("holds it", flush=True)
sys.stdin.read()
"""


@contextmanager
def writer(path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of a write to the file."""
    command = [sys.executable, "-c", WRITER, str(path), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds it\n"
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
