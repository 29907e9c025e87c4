"""A stream with two replicas and code of its own, and somebody without whom no replica of it lives on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.control.replica_process import OWNER

_STREAM = """\
topology: readings
replicas: 2
cells: {cells}
on_divergence: {on_divergence}
epoch: {{interval: {interval}}}
sources:
  ticks: {{generator: {{id: sequence, key: "choice(a, b, c)"}}, rate: 50}}
operators:
  tagged:  {{from: ticks, custom: "own:tagged", emits: "{emits}"}}
  counted: {{from: tagged, count: key}}
sinks:
  all:    {{from: tagged, file: out/all.jsonl}}
  counts: {{from: counted, file: out/counts.jsonl}}
"""


def stream(
    interval: str, emits: str = "id bigint, key string", on_divergence: str = "warn", cells: str = "any"
) -> str:
    """A topology whose `own.py` has a function `tagged`."""
    return _STREAM.format(interval=interval, emits=emits, on_divergence=on_divergence, cells=cells)


@contextmanager
def owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replicas that are started meanwhile are gone afterwards, also those that nobody watches."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setenv(OWNER, str(process.pid))
        yield
        process.kill()
