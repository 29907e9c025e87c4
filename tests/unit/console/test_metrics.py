"""Figures for Prometheus, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from penstock.console.desired import Wanted
from penstock.console.metrics import _HELP, metrics
from penstock.console.watching import Watched

from .running_console import view

DOCS = Path(__file__).parents[3] / "docs"


def watched() -> Watched:
    made = Watched(Wanted("count", "d", "f", replicas=2))
    made.seen = {"how": "running", "heard": time.monotonic(), "epoch": 7,
                    "replicas": [view("1"), view("2", "recovering", behind=3), view("3", "parked")],
                    "progress": {"tuples": {'a"b': 5, "c": None}, "delivered": {"out": 4}, "lag": 2, "epoch_ms": 250.0,
                                 "age_ms": 750.0, "late": 1, "failed": {"own": 3}}}  # fmt: skip
    return made


def test_every_figure_is_described_and_its_labels_are_quoted() -> None:
    text = metrics([watched()], nodes=1, leading=True)
    assert 'penstock_tuples_total{topology="count",node="a\\"b"} 5.0' in text
    assert 'penstock_replica_behind_epochs{topology="count",replica="2"} 3.0' in text
    assert 'penstock_replicas_parked{topology="count"} 1.0' in text
    assert "penstock_epoch_seconds{topology=\"count\"} 0.25" in text
    assert "penstock_tuple_age_seconds{topology=\"count\"} 0.75" in text
    told = set(re.findall(r"^(penstock_\w+)", text, re.MULTILINE))
    assert told == set(_HELP), "each has a sample here"
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == told


def test_one_that_does_not_run_is_not_at_work() -> None:
    for how, share in (("running", "0.4"), ("stopped", "0.0")):
        one = watched()
        assert one.seen is not None
        one.seen = {**one.seen, "how": how, "progress": {**one.seen["progress"], "at_work": 0.4}}
        assert f'penstock_at_work{{topology="count"}} {share}' in metrics([one], 1, True)


def test_the_dashboard_and_the_docs_know_the_figures_that_there_are() -> None:
    dashboard = json.loads((DOCS / "grafana/penstock.json").read_text())
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"penstock_\w+", target["expr"])}  # fmt: skip
    assert asked == set(_HELP)
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (DOCS / "console.md").read_text().splitlines() if line.startswith("| `penstock_")]  # fmt: skip
    assert {row[0].strip("`"): (row[2], row[3]) for row in rows} == _HELP
    labels = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows}
    assert labels == labels_told()


def labels_told() -> dict[str, set[str]]:
    text = metrics([watched()], nodes=1, leading=True)
    found = re.findall(r"^(penstock_\w+)(?:\{(.*)\})? ", text, re.MULTILINE)
    return {name: set(re.findall(r'(\w+)="', given)) for name, given in found}
