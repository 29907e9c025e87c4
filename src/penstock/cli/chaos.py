"""`penstock chaos`: kill a topology again and again, and see whether it keeps its promise."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.chaos.life import PENSTOCK
from penstock.cli.loading import File, Sets, load, parse_sets, topology_path
from penstock.cli.screen import err, fail, out
from penstock.errors import PenstockError
from penstock.topology.loading import find_topology_file
from penstock.topology.model import Topology

if TYPE_CHECKING:
    from penstock.chaos.report import Report
    from penstock.chaos.trial import Scene, Strike


def chaos(
    file: File = None,
    sets: Sets = None,
    kills: Annotated[int, typer.Option(min=0, help="How many times to `kill -9` it.")] = 5,
    seed: Annotated[
        int | None,
        typer.Option(help="Decides what is done and when: the same seed, the same kills. By default a new one.",
                     show_default=False),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also delete the last commit-log entry, cut the newest checkpoint files short, "
                     "and fill the disk (a small tmpfs: needs root)."),
    ] = False,
    rescale: Annotated[
        list[str] | None,
        typer.Option(metavar="OPERATOR=N,N…", help="Also rescale a stateful operator while it runs, to each number in "
                     "turn. May be repeated."),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="How many replicas the disturbed run has, of which one at a time is killed or frozen; "
                     "also their supervisor. By default as the topology says.", show_default=False),
    ] = None,
    gap_goal: Annotated[
        bool,
        typer.Option("--gap-goal", help="With replicas: exit with 1 also when somebody could notice a blow, by a gap "
                     "between two epochs that is longer than the longest one otherwise and an interval. On a machine "
                     "with other work that may be its doing."),
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that may differ between two runs, such as a time. "
                     "May be repeated."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Where Spark runs, as for `penstock run`.")
    ] = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="A run that commits nothing for so long counts as hung.")
    ] = 120.0,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep both runs' output, state and logs here. By default they are "
                     "removed when the promise was kept."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the report. By default chaos-report.json among what is "
                     "kept."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What happens, and the report, as JSON lines.")] = False,
) -> None:
    """Prove a topology's delivery guarantee by killing it.

    Runs the topology on its input once undisturbed. Then once more, while it is killed with `kill -9` (the driver,
    the JVM, a Python worker; at any time and at chosen moments: after the offset log, during a task, between two
    sinks' commits, before the commit log), frozen, and restarted. After each death it is started again, as a
    supervisor would. In the end the rows of both runs are compared as multisets, sink by sink:

        words: lost 0, duplicated 0, reordered 0

    Your sinks are left alone: both runs write into a scratch folder. The input must end, and is cut into enough small
    epochs for all the kills; `--set epoch.max_tuples=N` decides otherwise.

    With `--replicas 2` the disturbed run has replicas, and the next blow falls when all are safe again: then nobody who
    looks at the output may notice anything, and the longest gap between two epochs is told. With `--gap-goal`, one that
    is longer than the goal is a failure like a lost row.

    Examples: `penstock chaos --kills 20`, `penstock chaos --set delivery=at-least-once`, `penstock chaos --deep`,
    `penstock chaos --rescale counts=5,3`, `penstock chaos --replicas 2`.

    Exit code 0: the promise was kept. 1: it was broken, or a run hung or failed for good; with `--gap-goal` also: a gap
    was longer than the goal. 2: the topology or an option is wrong.
    """
    topology = load(file, sets, quiet=as_json)
    from penstock.chaos.rehearsal import Settings, rehearse
    from penstock.chaos.schedule import DEEP
    from penstock.chaos.subject import comparable_sinks, prepare
    from penstock.chaos.trial import Ways

    rescales = _rescales(topology, rescale or [])
    path = topology_path(file)
    path = (find_topology_file(path) or path) if path.is_dir() else path
    blows = kills + (len(DEEP) if deep else 0) + len(rescales)
    number = replicas or topology.replicas
    if number > 1 and (deep or rescales):
        fail("--deep and --rescale are for one run: add --replicas 1", 2)
    if number == 1 and gap_goal:
        fail("--gap-goal is for replicas, one run always pauses after a kill: add --replicas 2", 2)
    subject = prepare(topology, parse_sets(sets), blows, number)
    comparable_sinks(topology, Path(tempfile.gettempdir()))
    chosen = random.randrange(10_000) if seed is None else seed
    settings = Settings(kills, chosen, deep, tuple(ignore or ()), rescales, gap_goal)
    arguments = [str(path), *(part for item in subject.sets for part in ("--set", item))]
    where = ["--master", master] if master else []
    with _stopped_like_ctrl_c(), _scratch(keep) as scratch, _choose_stage(as_json) as stage:
        ways = Ways((*PENSTOCK, "run", *arguments, *where), patience, stage.look, stage.tell,
                    (*PENSTOCK, "rescale", *arguments))
        found = rehearse(subject, settings, ways, scratch.path, stage.begin)
        scratch.kept |= not found.passed
        place, trouble = _write_report(found, report, scratch.path)
    _show(found, as_json)
    if trouble:
        fail(f"the report could not be written to {place}: {trouble}", 1)
    if report is not None or scratch.kept:
        err.print(Text(f"report: {place}", style="dim"), soft_wrap=True)
    if not found.passed:
        sys.exit(1)


def _rescales(topology: Topology, wanted: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Operators and numbers, in the order written; exits, or raises TopologyError, for what cannot be."""
    from penstock.runtime.division import check_rescale

    found = []
    for item in wanted:
        operator, _, numbers = item.partition("=")
        for number in numbers.split(","):
            if not number.strip().lstrip("-").isdigit():
                fail(f"--rescale {item}: write OPERATOR=N,N…, for example counts=5,3", 2)
            check_rescale(topology, operator, int(number))
            found.append((operator, int(number)))
    return tuple(found)


class _Scratch:
    def __init__(self, path: Path, kept: bool) -> None:
        self.path = path
        self.kept = kept


@contextmanager
def _scratch(keep: Path | None) -> Iterator[_Scratch]:
    """A new folder for everything; removed afterwards unless it is to be kept."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        fail(f"--keep {keep}: the folder is not empty; name a new one", 2)
    made = keep.absolute() if keep is not None else Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    made.mkdir(parents=True, exist_ok=True)
    scratch = _Scratch(made, keep is not None)
    try:
        yield scratch
    except PenstockError:
        scratch.kept = True
        err.print(Text(f"what there is of the runs is in {made}", style="dim"), soft_wrap=True)
        raise
    finally:
        if not scratch.kept:
            shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _stopped_like_ctrl_c() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, so that no process and no mount is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _write_report(found: Report, wanted: Path | None, scratch: Path) -> tuple[Path, str]:
    """Where it is, or should be, and why it could not be written."""
    place = wanted or scratch / "chaos-report.json"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found.to_json(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        return place, error.strerror or str(error)
    return place, ""


def _show(found: Report, as_json: bool) -> None:
    if as_json:
        _json({"event": "report", **found.to_json()})
        return
    out.print(_table(found.disturbed.strikes))
    *lines, conclusion = found.lines()
    for line in lines:
        out.print(Text(line, style="red" if line.startswith("broken") else ""), soft_wrap=True)
    style = "bold red" if not found.passed else "bold yellow" if found.noticed else "bold green"
    out.print(Text(conclusion, style=style), soft_wrap=True)


def _table(strikes: Sequence[Strike]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("at", justify="right")
    table.add_column("epoch", justify="right")
    table.add_column("what was done to it")
    for strike in strikes:
        at = "–" if strike.seconds is None else f"{strike.seconds:.1f} s"
        what = f"{strike.disturbance}{': ' if strike.outcome else ''}{strike.outcome}"
        table.add_row(at, str(strike.epoch), Text(what, overflow="fold"))
    return table


class _Stage:
    """How a rehearsal shows itself while it runs: a line for what happens, in a pipe."""

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing to tidy up."""

    def begin(self, phase: str, epochs: int) -> None:
        self._phase, self._epochs = phase, epochs
        sys.stderr.write(f"{phase}: {epochs} epochs …\n")
        sys.stderr.flush()

    def look(self, scene: Scene) -> None:
        """How it stands; called many times a second."""

    def tell(self, strike: Strike) -> None:
        at = 0.0 if strike.seconds is None else strike.seconds
        sys.stderr.write(f"{at:7.1f} s  epoch {strike.epoch}  {strike.disturbance}\n")
        sys.stderr.flush()


class _LiveStage(_Stage):
    """One line that stays in place, on a terminal."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", "preparing")
        self._live = Live(self._spinner, console=err, refresh_per_second=8, transient=True)
        self._last = ""

    def __enter__(self) -> _LiveStage:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._live.__exit__(*exception)

    def begin(self, phase: str, epochs: int) -> None:
        self._phase, self._epochs = phase, epochs

    def look(self, scene: Scene) -> None:
        starts = f"   start {scene.starts}" if scene.starts > 1 else ""
        blows = f"   {scene.strikes} done: {self._last}" if scene.strikes else ""
        self._spinner.update(text=f"{self._phase}   epoch {scene.epoch} of {self._epochs}{starts}{blows}")

    def tell(self, strike: Strike) -> None:
        self._last = str(strike.disturbance)


class _JsonStage(_Stage):
    """JSON lines on standard output."""

    def begin(self, phase: str, epochs: int) -> None:
        _json({"event": "phase", "phase": phase, "epochs": epochs})

    def tell(self, strike: Strike) -> None:
        from penstock.chaos.report import strike_json

        _json({"event": "strike", **strike_json(strike)})


def _choose_stage(as_json: bool) -> _Stage:
    if as_json:
        return _JsonStage()
    return _LiveStage() if err.is_terminal else _Stage()


def _json(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
