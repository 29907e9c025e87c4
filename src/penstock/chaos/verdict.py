"""Compare what two runs delivered, and judge it by what was promised. Pure."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.topology.model import Delivery

_EXAMPLES = 3

Rows = Sequence[str]
"""A sink's rows in order, each as text: see `row_text`."""


@dataclass(frozen=True)
class Verdict:
    """How the disturbed run's rows at one sink differ from the reference's."""

    sink: str
    rows: int
    """How many the reference has."""
    lost: int = 0
    duplicated: int = 0
    """Copies beyond those that the reference has, of rows that it has."""
    unexpected: int = 0
    """Rows that the reference does not have at all."""
    reordered: int = 0
    """Rows that both have, at another place; told for information, no guarantee speaks of it."""
    examples: tuple[str, ...] = ()
    """A few of the rows that differ, with how."""

    def __str__(self) -> str:
        unexpected = f", unexpected {self.unexpected}" if self.unexpected else ""
        return f"lost {self.lost}, duplicated {self.duplicated}{unexpected}, reordered {self.reordered}"


def row_text(row: Mapping[str, Any], ignored: Collection[str] = ()) -> str:
    """A row as text that is equal exactly when the row is; `ignored` columns are left out."""
    kept = {name: value for name, value in row.items() if name not in ignored}
    return json.dumps(kept, sort_keys=True, default=str, ensure_ascii=False)


def compare(sink: str, reference: Rows, disturbed: Rows) -> Verdict:
    """The differences as multisets, and how many of the common rows stand elsewhere."""
    wanted, got = Counter(reference), Counter(disturbed)
    lost, extra = wanted - got, got - wanted
    duplicated = Counter({row: number for row, number in extra.items() if row in wanted})
    unexpected = extra - duplicated
    return Verdict(
        sink,
        len(reference),
        lost.total(),
        duplicated.total(),
        unexpected.total(),
        _reordered(reference, lost, disturbed, extra),
        tuple(
            f"{how}: {row}"
            for how, rows in (("lost", lost), ("duplicated", duplicated), ("unexpected", unexpected))
            for row in itertools.islice(rows, _EXAMPLES)
        ),
    )


def breaches(delivery: Delivery, verdicts: Iterable[Verdict]) -> list[str]:
    """Every way in which the promise is broken, in words; none when it is kept.

    Rows that the reference does not have break any promise: also an epoch that at-most-once does not deliver
    is computed, so the state behind it, and with it every later row, is the same.
    """
    return [f"sink '{verdict.sink}': {what}" for verdict in verdicts for what in _broken(delivery, verdict)]


def _broken(delivery: Delivery, verdict: Verdict) -> list[str]:
    broken = []
    if verdict.lost and delivery is not Delivery.AT_MOST_ONCE:
        broken.append(f"{delivery} was promised, and {_rows(verdict.lost)} lost")
    if verdict.duplicated and delivery is not Delivery.AT_LEAST_ONCE:
        broken.append(f"{delivery} was promised, and {_rows(verdict.duplicated)} doubled")
    if verdict.unexpected:
        broken.append(f"{_rows(verdict.unexpected)} delivered that the undisturbed run does not have")
    return broken


def _rows(number: int) -> str:
    return "1 row was" if number == 1 else f"{number:,} rows were"


def _reordered(reference: Rows, lost: Counter[str], disturbed: Rows, extra: Counter[str]) -> int:
    pairs = zip(_without(reference, lost), _without(disturbed, extra), strict=True)
    return sum(one != other for one, other in pairs)


def _without(rows: Rows, removed: Counter[str]) -> Iterable[str]:
    """The rows in order without the last `removed` copies of each: later ones are the copies."""
    if not removed:
        return rows
    left = Counter(removed)
    kept = []
    for row in reversed(rows):
        if left[row]:
            left[row] -= 1
        else:
            kept.append(row)
    return reversed(kept)
