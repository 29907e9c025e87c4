"""Malformed records on their way from the executors to the driver: counted, and kept where asked.

A slice's malformed records go into one file named after the epoch and the slice, so that a task that
runs twice writes the same file twice. The driver picks the files up when it commits the epoch.
"""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import asdict
from pathlib import Path

from penstock.connectors.base import Malformed
from penstock.errors import MalformedRecord
from penstock.spark.faults import WorkerFault
from penstock.topology.model import Source

FOLDER = "malformed"


class MalformedLedger:
    """Collects what one task found malformed in one source."""

    def __init__(self, state: Path, source: Source) -> None:
        self._state = state
        self._source = source
        self._count = 0
        self._records: list[Malformed] = []

    def note(self, malformed: tuple[Malformed, ...]) -> None:
        """Take records in; raises at the first one where the source says `on_malformed: fail`."""
        if not malformed:
            return
        if self._source.on_malformed == "fail":
            first = malformed[0]
            raise WorkerFault("malformed", _message(self._source.name, first))
        self._count += len(malformed)
        if self._source.on_malformed == "dead-letter":
            self._records.extend(malformed)

    def close(self, epoch: int, first: int) -> None:
        """Hand over what was found, if anything."""
        if not self._count:
            return
        folder = self._state / FOLDER / str(epoch)
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{uuid.uuid4().hex}"
        with temporary.open("w") as file:
            file.write(json.dumps({"source": self._source.name, "count": self._count}) + "\n")
            for record in self._records:
                file.write(json.dumps({"source": self._source.name, **asdict(record)}) + "\n")
        temporary.replace(folder / f"{self._source.name}-{first}")


def collect_malformed(state: Path, epoch: int) -> tuple[dict[str, int], list[str]]:
    """The counts by source and the dead letters (JSON lines) of an epoch, in a fixed order."""
    counts: dict[str, int] = {}
    letters: list[str] = []
    folder = state / FOLDER / str(epoch)
    if not folder.is_dir():
        return counts, letters
    for path in sorted(folder.iterdir(), key=lambda item: item.name):
        if path.name.startswith("."):
            continue
        head, *lines = path.read_text().splitlines()
        summary = json.loads(head)
        counts[summary["source"]] = counts.get(summary["source"], 0) + summary["count"]
        letters.extend(lines)
    return counts, letters


def discard_malformed(state: Path, epoch: int) -> None:
    """Remove what an epoch handed over, once it is committed."""
    shutil.rmtree(state / FOLDER / str(epoch), ignore_errors=True)


def _message(source: str, record: Malformed) -> str:
    shown = record.raw if len(record.raw) <= 200 else record.raw[:200] + "…"
    return str(
        MalformedRecord(
            f"source '{source}': malformed record at {record.position}: {record.error}\n"
            f"  {shown!r}\n"
            "  set on_malformed: drop or on_malformed: dead-letter to go on without such records"
        )
    )
