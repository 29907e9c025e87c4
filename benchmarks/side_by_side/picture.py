"""The ratios as a drawing. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.bench.chart import bar_chart
from side_by_side.contestants import JOBS, PENSTOCK, contestant
from side_by_side.ratios import Figures, ratio

TITLE = "Penstock beside other systems"


def ratios_picture(results: Mapping[str, Figures]) -> str:
    """A bar for each job and peer: how many times as fast Penstock is; none where one of the two has no figure."""
    bars = {}
    for job in (job.name for job in JOBS if job.name in results):
        figures = results[job]
        for name in (name for name in figures if name != PENSTOCK):
            times = ratio(figures.get(PENSTOCK), figures[name])
            if times is not None:
                bars[f"{job}, {contestant(name).shown}"] = times
    return bar_chart(TITLE, bars, "how many times as fast Penstock is", digits=2)
