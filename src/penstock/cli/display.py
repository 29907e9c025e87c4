"""How a run shows itself: a live table on a terminal, plain lines in a pipe, or JSON lines."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.cli.screen import err, out, tell
from penstock.cli.status import replica_table
from penstock.connectors.console import EpochRows, as_json_line, as_rich_table
from penstock.connectors.memory import rows_of
from penstock.errors import PenstockError
from penstock.replication.lifecycle import Phase, safety
from penstock.replication.views import ReplicaView
from penstock.runtime.progress import Snapshot
from penstock.runtime.progress_file import ProgressFile
from penstock.runtime.run import Outcome
from penstock.runtime.tally import Line
from penstock.topology.logged_tuples import is_only_logged, logged_streams, tuple_line
from penstock.topology.model import Topology

FIRST_EPOCH = "first epoch"


class Display(AbstractContextManager["Display"], Protocol):
    """What a run tells its display."""

    def say(self, what: str) -> None:
        """Something is being done that has no progress yet."""

    def log(self, line: str) -> None:
        """A line of the log: a command that is carried out, or a tuple that was emitted."""

    def look(self, snapshot: Snapshot) -> None:
        """The progress now; called many times a second."""

    def rows(self, rows: EpochRows) -> None:
        """What a console sink received."""

    def replicas(self, views: list[ReplicaView]) -> None:
        """How the replicas are, when there are several; called many times a second."""

    def end(self, snapshot: Snapshot, how: str) -> None:
        """The run is over."""


class LiveDisplay:
    """A table that stays in place; rows of console sinks scroll by above it."""

    def __init__(self, topology: Topology, lines: Callable[[Snapshot], list[Line]]) -> None:
        self._topology = topology
        self._logged = logged_streams(topology)
        self._lines = lines
        self._what = "checking"
        self._rates = Rates()
        self._views: list[ReplicaView] = []
        self._live = Live(Spinner("dots", "checking"), console=err, refresh_per_second=8, transient=True)
        self._began = time.monotonic()

    def __enter__(self) -> LiveDisplay:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._live.__exit__(*exception)

    def say(self, what: str) -> None:
        self._what = what
        self._live.update(_Waiting(what, self._began))

    def log(self, line: str) -> None:
        err.print(line, markup=False, highlight=False, soft_wrap=True)

    def look(self, snapshot: Snapshot) -> None:
        if snapshot.epoch == 0:
            if self._what != FIRST_EPOCH:
                self.say(FIRST_EPOCH)
        elif self._rates.due():
            self._live.update(self._table(snapshot))

    def rows(self, rows: EpochRows) -> None:
        if not is_only_logged(rows.sink):
            out.print(as_rich_table(rows))
        for line in logged_lines(rows, self._logged):
            self.log(line)

    def replicas(self, views: list[ReplicaView]) -> None:
        self._views = views

    def end(self, snapshot: Snapshot, how: str) -> None:
        self._live.update(Text(""))
        self._live.stop()
        err.print(self._table(snapshot, final=True))
        err.print(Text(how, style="green"))

    def _table(self, snapshot: Snapshot, final: bool = False) -> RenderableType:
        lines = self._lines(snapshot)
        rates = {} if final else self._rates.of(lines)
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
        for name, justify in (("", "left"), ("", "left"), ("tuples", "right"), ("per second", "right")):
            table.add_column(name, justify=justify)  # type: ignore[arg-type]
        for line in lines:
            if line.tuples is None:
                table.add_row(Text(line.role, style="dim"), Text(line.name, style="bold"), "–", "–")
                continue
            mean = line.tuples / max(snapshot.seconds, 1e-3)
            rate = mean if final else rates.get((line.role, line.name), 0.0)
            tuples = Text(f"{line.tuples:,}")
            if line.malformed:
                tuples.append(f" (+{line.malformed:,} malformed)", style="yellow")
            if line.failed:
                tuples.append(f" ({line.failed:,} failed)", style="yellow")
            table.add_row(Text(line.role, style="dim"), Text(line.name, style="bold"), tuples, f"{rate:,.0f}")
        head = Text.assemble(
            (self._topology.name, "bold cyan"),
            f"   epoch {snapshot.epoch:,}   {snapshot.last_epoch_ms:,.0f} ms   lag {snapshot.backlog:,}",
            f"   {snapshot.seconds:,.1f} s",
        )
        notes: list[RenderableType] = [Text(f"waiting: {snapshot.waiting}", style="yellow")] if snapshot.waiting else []
        if snapshot.lost:
            notes.append(Text(f"{snapshot.lost:,} tuples of interrupted epochs were skipped", style="yellow"))
        if snapshot.retried:
            notes.append(Text(f"{snapshot.retried:,} times a tuple failed and was put off for later", style="yellow"))
        if snapshot.late:
            notes.append(Text(f"{snapshot.late:,} tuples came too late for their window", style="yellow"))
        if self._views and not final:
            notes.append(replica_table(self._views))
        return Group(head, *notes, table)


class PlainDisplay:
    """One line every two seconds, for logs and pipes; on standard error, so that rows stay clean."""

    def __init__(self, topology: Topology, lines: Callable[[Snapshot], list[Line]]) -> None:
        self._logged = logged_streams(topology)
        self._lines = lines
        self._rates = Rates(every=2.0)
        self._safety = ""

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing to tidy up."""

    def say(self, what: str) -> None:
        _line(f"{what} …")

    def log(self, line: str) -> None:
        _line(line)

    def look(self, snapshot: Snapshot) -> None:
        if snapshot.epoch and self._rates.due():
            _line(self._summary(snapshot))

    def rows(self, rows: EpochRows) -> None:
        if not is_only_logged(rows.sink):
            for row in rows_of(rows.rows):
                sys.stdout.write(as_json_line(row))
            sys.stdout.flush()
        for line in logged_lines(rows, self._logged):
            self.log(line)

    def replicas(self, views: list[ReplicaView]) -> None:
        # Without how far behind, which changes all the time.
        line = safety([view.phase for view in views], 0).partition(", 0 epochs")[0]
        if line != self._safety:
            self._safety = line
            _line(f"replicas: {line}")

    def end(self, snapshot: Snapshot, how: str) -> None:
        _line(self._summary(snapshot))
        _line(how)

    def _summary(self, snapshot: Snapshot) -> str:
        counts = " ".join(
            f"{line.name}={line.tuples}"
            + (f"(+{line.malformed} malformed)" if line.malformed else "")
            + (f"({line.failed} failed)" if line.failed else "")
            for line in self._lines(snapshot)
            if line.tuples is not None
        )
        lost = f" lost {snapshot.lost}" if snapshot.lost else ""
        waiting = f" waiting: {snapshot.waiting}" if snapshot.waiting else ""
        retried = f" retried {snapshot.retried}" if snapshot.retried else ""
        late = f" late {snapshot.late}" if snapshot.late else ""
        return f"epoch {snapshot.epoch} lag {snapshot.backlog} {counts}{lost}{retried}{late}{waiting}"


class JsonDisplay:
    """Everything as JSON lines on standard output; each says when it was, and of which topology and replica."""

    def __init__(
        self, topology: Topology, lines: Callable[[Snapshot], list[Line]], replica: str | None = None,
        progress_file: Path | None = None,
    ) -> None:
        """With a `progress_file`, progress is there as soon as there is any, and here once a second."""
        self._file = None if progress_file is None else ProgressFile(progress_file)
        self._logged = logged_streams(topology)
        self._of = {"topology": topology.name, **({} if replica is None else {"replica": replica})}
        self._lines = lines
        self._rates = Rates(every=1.0)
        self._phases: list[Phase] = []
        self._failed: dict[str, int] = {}

    def __enter__(self) -> JsonDisplay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: Any) -> None:
        if isinstance(error, PenstockError):
            epoch = {} if error.epoch is None else {"epoch": error.epoch}
            self._tell("error", error=str(error), **named_in(str(error)), **epoch)

    def say(self, what: str) -> None:
        self._tell("phase", phase=what)

    def log(self, line: str) -> None:
        self._tell("log", line=line)

    def look(self, snapshot: Snapshot) -> None:
        if not snapshot.epoch:
            return
        if self._rates.due():
            self._failures(snapshot)
            self._tell("progress", **self._progress(snapshot))
        if self._file is not None:
            self._file.write(self._progress(snapshot))

    def rows(self, rows: EpochRows) -> None:
        for row in () if is_only_logged(rows.sink) else rows_of(rows.rows):
            self._tell("row", sink=rows.sink, epoch=rows.epoch, row=json.loads(as_json_line(row)))
        for line in logged_lines(rows, self._logged):
            self._tell("log", line=line, operator=self._logged[rows.sink], epoch=rows.epoch)

    def replicas(self, views: list[ReplicaView]) -> None:
        phases = [view.phase for view in views]
        if phases != self._phases:
            self._phases = phases
            self._tell("replicas", replicas=[asdict(view) for view in views])

    def end(self, snapshot: Snapshot, how: str) -> None:
        self._failures(snapshot)
        self._tell("end", **self._progress(snapshot), how=how)
        if self._file is not None and snapshot.epoch:
            self._file.write(self._progress(snapshot))

    def _failures(self, snapshot: Snapshot) -> None:
        """A line for each operator in which tuples have failed since the last time."""
        for operator, number in snapshot.failed.items():
            more = number - self._failed.get(operator, 0)
            if more > 0:
                self._tell("failed", operator=operator, epoch=snapshot.epoch, tuples=more)
        self._failed = dict(snapshot.failed)

    def _progress(self, snapshot: Snapshot) -> dict[str, Any]:
        lines = [line for line in self._lines(snapshot) if line.role != "sink"]
        return {
            "epoch": snapshot.epoch,
            "lag": snapshot.backlog,
            "seconds": round(snapshot.seconds, 3),
            "epoch_ms": round(snapshot.last_epoch_ms, 1),
            "age_ms": snapshot.age_ms,
            "at_work": snapshot.at_work,
            "tuples": {line.name: line.tuples for line in lines},
            "ports": {f"{line.name}.{port}": tuples for line in lines for port, tuples in line.ports.items()},
            "delivered": snapshot.delivered,
            "malformed": snapshot.malformed,
            "failed": snapshot.failed,
            "retried": snapshot.retried,
            "lost": snapshot.lost,
            "late": snapshot.late,
            "waiting": snapshot.waiting,
        }

    def _tell(self, event: str, **fields: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"event": event, **fields, "time": now, **self._of}) + "\n"
        if event == "row":
            # Somebody may keep these: they are not lost in silence.
            sys.stdout.write(line)
            sys.stdout.flush()
        else:
            tell("stdout", line)


def named_in(error: str) -> dict[str, str]:
    """Which operator, source or sink an error speaks of: all begin with it, or with its line."""
    found = re.search(r"^(?:\S+:\d+: )?(operator|source|sink) '([^']+)'", error)
    return {} if found is None else {found[1]: found[2]}


def logged_lines(rows: EpochRows, logged: Mapping[str, str]) -> list[str]:
    """Lines of the log, for the tuples of a stream of which all are `logged`."""
    stream = logged.get(rows.sink)
    return [] if stream is None else [tuple_line(stream, row) for row in rows_of(rows.rows)]


class Rates:
    """Tuples per second between two looks."""

    def __init__(self, every: float = 0.5) -> None:
        self._every = every
        self._next = 0.0
        self._then = time.monotonic()
        self._before: dict[tuple[str, str], int] = {}

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._every
        return True

    def of(self, lines: list[Line]) -> dict[tuple[str, str], float]:
        now = time.monotonic()
        took = max(now - self._then, 1e-3)
        counts = {(line.role, line.name): line.tuples for line in lines if line.tuples is not None}
        rates = {node: (number - self._before.get(node, 0)) / took for node, number in counts.items()}
        self._then, self._before = now, counts
        return rates


class _Waiting:
    """A spinner that tells how long it has been waiting."""

    def __init__(self, what: str, began: float) -> None:
        self._spinner = Spinner("dots")
        self._what = what
        self._began = began

    def __rich__(self) -> RenderableType:
        self._spinner.update(text=f"{self._what} … {time.monotonic() - self._began:.0f} s")
        return self._spinner


def how_it_ended(outcome: Outcome) -> str:
    """The last words of a run."""
    progress = outcome.progress
    after = f"after {progress.epoch} epoch{'' if progress.epoch == 1 else 's'}, {progress.seconds:.1f} s"
    how = f"done {after}" if outcome.ended else f"stopped {after}; the same command goes on from here"
    if progress.lost:
        how += f"; {progress.lost} tuples of interrupted epochs were skipped, as at-most-once promises"
    return how


def choose_display(
    topology: Topology, lines: Callable[[Snapshot], list[Line]], as_json: bool, replica: str | None = None,
    progress_file: Path | None = None,
) -> Display:
    """JSON when asked for, the live table on a terminal, plain lines otherwise."""
    if as_json:
        return JsonDisplay(topology, lines, replica, progress_file)
    return LiveDisplay(topology, lines) if err.is_terminal else PlainDisplay(topology, lines)


def _line(text: str) -> None:
    tell("stderr", text + "\n")

