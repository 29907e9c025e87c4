"""The figures as Markdown, which is read as easily on a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from side_by_side.contestants import JOBS, JSON, PENSTOCK, STATELESS, contestant
from side_by_side.ratios import GOALS, NOT_RUN, Figure, Figures, ratio, verdict
from side_by_side.recovery import Recovered

_CEILING = "bytewax"
"""It hands references from function to function where others move data: no goal, but the most there is."""


def ratios_table(results: Mapping[str, Figures]) -> str:
    """A line for each job: how fast each contestant was, how many times as fast Penstock is, and the goals."""
    names = list(dict.fromkeys(name for figures in results.values() for name in figures))
    lines = [_line(["", *(contestant(name).shown for name in names), "goal"]), _line(["---"] * (len(names) + 2))]
    notes: list[str] = []
    for job in (job for job in JOBS if job.name in results):
        figures = results[job.name]
        cells = [_cell(name, job.name, figures, notes) for name in names]
        goals = "; ".join(str(verdict(goal, results)) for goal in GOALS if goal.job == job.name)
        lines.append(_line([job.shown, *cells, goals]))
    return "\n".join([*lines, *_notes(notes)])


def _cell(name: str, job: str, figures: Figures, notes: list[str]) -> str:
    figure = figures.get(name, Figure(trouble=NOT_RUN))
    if figure.trouble == NOT_RUN:
        return NOT_RUN
    if figure.rate is None:
        shown = "none" if figure.trouble and job in contestant(name).lacks else "failed"
        return shown + _mark(notes, f"{contestant(name).shown}: {figure.trouble}")
    said = rate(job, figure.rate)
    times = None if name == PENSTOCK else ratio(figures.get(PENSTOCK), figure)
    if times is not None:
        said += f" ({times:.2f} ×)"
    if name == _CEILING and job == STATELESS.name:
        said += _mark(notes, f"{contestant(name).shown} hands references on within a process: the ceiling")
    return said


def rate(job: str, per_second: float) -> str:
    if job == JSON.name:
        return f"{per_second / 1e6:,.1f} MB/s"
    return f"{per_second / 1e6:.2f} M/s" if per_second >= 1e6 else f"{per_second / 1e3:,.0f} K/s"


def recovery_table(recovered: Mapping[str, Sequence[Recovered]]) -> str:
    """A line for each contestant: medians of the times, and the worst of what was lost, doubled or written again."""
    heads = ["killed and started again", "seconds without output", "most before the kill", "tuples lost",
             "tuples doubled", "rows repeated"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    notes: list[str] = []
    for name, each in recovered.items():
        trouble = next((one.trouble for one in each if one.trouble is not None), None)
        if trouble is not None or not each:
            said = NOT_RUN if trouble is None else f"failed{_mark(notes, f'{contestant(name).shown}: {trouble}')}"
            lines.append(_line([contestant(name).shown, said, *[""] * (len(heads) - 2)]))
            continue
        lines.append(_line([
            contestant(name).shown, _seconds(one.silent_seconds for one in each),
            _seconds(one.usual_seconds for one in each), f"{max(one.lost for one in each):,}",
            f"{max(one.doubled for one in each):,}", f"{max(one.repeated for one in each):,}",
        ]))  # fmt: skip
    return "\n".join([*lines, *_notes(notes)])


def _seconds(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}" if known else "unknown"


def _mark(notes: list[str], said: str) -> str:
    if said not in notes:
        notes.append(said)
    return f" [{notes.index(said) + 1}]"


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"[{number}] {said}" for number, said in enumerate(notes, start=1))] if notes else []


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
