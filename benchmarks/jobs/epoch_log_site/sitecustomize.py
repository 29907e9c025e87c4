"""Python imports this when it starts, in every process of the `epoch_log` job: the reader is another process.

BENCH_LOG=none does away with the epoch log; BENCH_NOTES names a file that takes down how long each call of it took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord


def do_without_a_log() -> None:
    """Every proposal is agreed at once, and nothing is kept: as if each reader decided for itself."""

    def nothing(*_: Any) -> None:
        return None

    def agreed(_: EpochLog, record: EpochRecord) -> EpochRecord:
        return record

    for name in ("get", "clear", "note_progress", "forget_unneeded"):
        setattr(EpochLog, name, nothing)
    EpochLog.propose = agreed  # type: ignore[method-assign]


def take_the_time(notes: Path) -> None:
    for name in ("get", "propose"):
        setattr(EpochLog, name, _timed(getattr(EpochLog, name), name, notes))


def _timed(ask: Callable[..., Any], name: str, notes: Path) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        answer = ask(*arguments)
        took = (time.perf_counter() - began) * 1000
        with notes.open("a") as file:
            file.write(f"{name} {took}\n")
        return answer

    return timed


if os.environ.get("BENCH_LOG") == "none":
    do_without_a_log()
if "BENCH_NOTES" in os.environ:
    take_the_time(Path(os.environ["BENCH_NOTES"]))
