"""How long it takes from the start of a process to the first committed epoch, beside a bare Spark session.

All do the same job on the same input, in processes of their own and in turn. An epoch is committed when it is in
Spark's commit log: that can be seen from outside, and is the same moment for everybody.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from penstock.chaos.life import PENSTOCK, Session
from penstock.errors import DeliveryError

OURS, SPARKS, TUNED = "Penstock", "bare Spark", "bare Spark, Penstock's settings"
CONTESTANTS = (OURS, SPARKS, TUNED)
GOAL = 1.3
"""We may take so many times as long."""

_ROWS = 1000
_POLL_SECONDS = 0.01
_PATIENCE_SECONDS = 300.0
_BARE = Path(__file__).with_name("bare_query.py")
_TOPOLOGY = """\
topology: startup
sources:
  events: {file: in/events.jsonl, schema: "id bigint, user string, price double"}
operators:
  dear:  {from: events, filter: "price > 10"}
  gross: {from: dear, select: [id, price * 1.23 as gross]}
sinks:
  out: {from: gross, file: out/gross.jsonl}
"""

Seconds = Mapping[str, Sequence[float]]
"""By contestant."""


def turn_in(line: str) -> dict[str, float]:
    """A turn as it was written in JSON; raises KeyError where one of the contestants is missing."""
    took = json.loads(line)
    return {name: float(took[name]) for name in CONTESTANTS}


def measure_startup(repetitions: int, tell: Callable[[str], None]) -> Iterator[dict[str, float]]:
    """The seconds of each contestant, turn by turn; raises DeliveryError when one fails.

    Before the first turn everybody has run to its end once: files are in the system's memory then, and the archive of
    Spark's classes is made, which a JVM writes when it ends.
    """
    for name in CONTESTANTS:
        tell(f"{name}: once to its end, unmeasured")
        _timed(name, to_the_end=True)
    for turn in range(1, repetitions + 1):
        took = {}
        for name in CONTESTANTS:
            tell(f"{name}: {turn} of {repetitions}")
            took[name] = _timed(name)
        yield took


def ratios(seconds: Seconds) -> dict[str, float]:
    """How many times as long we take as each of the others, by medians."""
    return {name: median(seconds[OURS]) / median(seconds[name]) for name in CONTESTANTS if name != OURS}


def write_job(folder: Path) -> Path:
    """The input, and the topology that reads it."""
    (folder / "in").mkdir(parents=True)
    rows = ({"id": number, "user": f"user {number % 7}", "price": float(number % 100)} for number in range(_ROWS))
    (folder / "in" / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    topology = folder / "topology.yaml"
    topology.write_text(_TOPOLOGY)
    return topology


def _timed(name: str, to_the_end: bool = False) -> float:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        topology = write_job(folder)
        if name == OURS:
            state = folder / "state"
            command = [*PENSTOCK, "run", str(topology), "--state", str(state), "--json"]
            commits = state / "checkpoint" / "commits"
        else:
            settings = "spark" if name == SPARKS else "penstock"
            command = [sys.executable, "-P", str(_BARE), settings, str(folder)]
            commits = folder / "checkpoint" / "commits"
        return seconds_until(commits / "0", command, folder / "said", to_the_end)


def seconds_until(file: Path, command: Sequence[str], log: Path, to_the_end: bool = False) -> float:
    """From the start of a command until it has made a file; raises DeliveryError when it ends without.

    All its processes are killed then, unless it is to run to its end.
    """
    with log.open("w") as said:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            while not file.exists():
                if process.poll() is not None or time.monotonic() - began > _PATIENCE_SECONDS:
                    break
                time.sleep(_POLL_SECONDS)
            took = time.monotonic() - began
            if to_the_end:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE_SECONDS)
        finally:
            Session(process.pid).kill_all()
            process.wait()
    if not file.exists():
        raise DeliveryError(f"{' '.join(command[-4:])}: no epoch was committed:\n{log.read_text()[-3000:]}")
    return took
