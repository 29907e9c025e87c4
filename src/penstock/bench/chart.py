"""Charts as SVG: light, and dark where the viewer is dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 860, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 56, 52
_BAR, _NAMES = 24, 150
"""The height of a bar, and the least width of the names before it."""
_LEGEND_LEFT, _LEGEND_TOP, _LEGEND_ROW, _LEGEND_GAP, _SAMPLE = 20.0, 52, 18, 20.0, 22.0
_LETTER = 6.6
"""About the width of one, as far as can be told without its font."""
_DASHES = 'stroke-dasharray="3 5"'
_COLOURS = (("#d6455d", "#ff8497"), ("#0f9d76", "#3ecf9f"), ("#3b6fe0", "#7ea3ff"), ("#8a4fd3", "#bd93f5"),
            ("#b7791f", "#e8b45a"))
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def line_chart(
    title: str, series: Mapping[str, Points], across: str, up: str, beside: Mapping[str, Points] | None = None,
    beside_name: str = "",
) -> str:
    """One line for each series; `across` and `up` say what the axes are.

    `beside` is to be compared with the series of the same names: dashed, in their colours. `beside_name` says what it
    is. What is only beside has a colour of its own, and a dashed line in the legend.
    """
    beside = beside or {}
    names = [*series, *(name for name in beside if name not in series)]
    every = [point for points in (*series.values(), *beside.values()) for point in points] or [(0.0, 0.0)]
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    top = max(y for _, y in every) or 1.0
    span = right - left or 1.0
    legend, rows = _legend({name: name in series for name in names}, beside_name if beside else "")
    ceiling = _TOP + rows * _LEGEND_ROW
    height = _HEIGHT + rows * _LEGEND_ROW

    def place(x: float, y: float) -> tuple[float, float]:
        return (_LEFT + (x - left) / span * (_WIDTH - _LEFT - _RIGHT),
                height - _BOTTOM - y / top * (height - ceiling - _BOTTOM))

    parts = [_head(title, height), *legend]
    for value in ticks(0.0, top):
        x, y = place(left, value)
        parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text class="small" x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in ticks(left, right):
        x, y = place(value, 0.0)
        parts.append(f'<text class="small" x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{value:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text class="small" x="{middle}" y="{height - 12}" text-anchor="middle">{escape(across)}</text>')
    parts.append(f'<text class="small" x="{_LEFT}" y="{ceiling - 10}" text-anchor="start">{escape(up)}</text>')

    def drawn(points: Points) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))

    for number, name in enumerate(names):
        colour = f"c{number % len(_COLOURS)}"
        if name in series:
            parts.append(f'<polyline class="line {colour}" points="{drawn(series[name])}"/>')
        if name in beside:
            parts.append(f'<polyline class="line {colour}" {_DASHES} points="{drawn(beside[name])}"/>')
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Mapping[str, bool], beside_name: str) -> tuple[list[str], int]:
    """A sample of each line with its name, whole or dashed, below the title, and how many rows they take."""
    entries = [(f'class="line c{number % len(_COLOURS)}"' + ("" if whole else f" {_DASHES}"), name)
               for number, (name, whole) in enumerate(names.items())]  # fmt: skip
    if beside_name:
        entries.append((f'class="line muted" {_DASHES}', beside_name))
    parts: list[str] = []
    x, row = _LEGEND_LEFT, 0
    for style, name in entries:
        width = _SAMPLE + 6 + _LETTER * len(name)
        if x > _LEGEND_LEFT and x + width > _WIDTH - _RIGHT:
            x, row = _LEGEND_LEFT, row + 1
        y = _LEGEND_TOP + row * _LEGEND_ROW
        parts.append(f'<path {style} d="M{x:.1f} {y - 4}H{x + _SAMPLE:.1f}"/>')
        parts.append(f'<text class="small" x="{x + _SAMPLE + 6:.1f}" y="{y}">{escape(name)}</text>')
        x += width + _LEGEND_GAP
    return parts, row + 1 if entries else 0


def bar_chart(title: str, bars: Mapping[str, float], unit: str, digits: int = 0) -> str:
    """One bar for each name, with its value, and so many digits after the point."""
    height = _TOP + _BAR * len(bars) + 20
    left = max([float(_NAMES), *(_LETTER * len(name) + 20 for name in bars)])
    most = max(bars.values(), default=0.0) or 1.0
    parts = [_head(title, height), f'<text class="small" x="{left:g}" y="{_TOP - 8}">{escape(unit)}</text>']
    for number, (name, value) in enumerate(bars.items()):
        y = _TOP + number * _BAR
        width = value / most * (_WIDTH - left - 100)
        parts.append(f'<text class="small" x="{left - 10:g}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="bar" x="{left:g}" y="{y + 3}" width="{width:.1f}" height="{_BAR - 8}" rx="3"/>')
        parts.append(f'<text class="small" x="{left + width + 8:.1f}" y="{y + 15}">{value:,.{digits}f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers between the two."""
    if high <= low:
        return [low]
    raw = (high - low) / 5
    size = 10 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if raw <= size * factor)
    first = -(-low // step)
    return [round((first + number) * step, 10) for number in range(int((high - first * step) // step) + 1)]


def _head(title: str, height: int = _HEIGHT) -> str:
    light = _rules("#ffffff", "#1a2230", "#5d6b80", "#e4e9f0", 0)
    dark = _rules("#10151d", "#eef2f8", "#9dabc0", "#26303d", 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<style>text{{font-family:{_FONTS}}}.title{{font-size:16px;font-weight:700}}'
        f".small{{font-size:11.5px}}.line{{fill:none;stroke-width:2;stroke-linejoin:round}}{light}"
        f"@media (prefers-color-scheme: dark){{{dark}}}</style>\n"
        f'<rect class="ground" width="{_WIDTH}" height="{height}" rx="10"/>\n'
        f'<text class="title" x="20" y="30">{escape(title)}</text>'
    )


def _rules(ground: str, ink: str, muted: str, grid: str, which: int) -> str:
    lines = "".join(f".c{number}{{stroke:{pair[which]}}}" for number, pair in enumerate(_COLOURS))
    lines += f".bar{{fill:{_COLOURS[2][which]}}}"
    lines += f".muted{{stroke:{muted}}}"
    return f".ground{{fill:{ground}}}.title{{fill:{ink}}}.small{{fill:{muted}}}.grid{{stroke:{grid}}}{lines}"
