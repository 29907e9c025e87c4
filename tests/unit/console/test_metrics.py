"""Figures for Prometheus, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from penstock.console.desired import Wanted
from penstock.console.metrics import _HELP, metrics
from penstock.console.watching import Watched

from .running_console import view

DOCS = Path(__file__).parents[3] / "docs"


def test_every_figure_is_described_and_its_labels_are_quoted() -> None:
    watched = Watched(Wanted("count", "d", "f", replicas=2))
    replicas = [view("1"), view("2", "recovering", behind=3), view("3", "parked")]
    watched.seen = {"how": "running", "at": 9e9, "epoch": 7, "replicas": replicas,
                    "progress": {"tuples": {'a"b': 5, "c": None}, "delivered": {"out": 4}, "lag": 2, "epoch_ms": 250.0,
                                 "late": 1, "failed": {"own": 3}}}  # fmt: skip
    text = metrics([watched], nodes=1, leading=True)
    assert 'penstock_tuples_total{topology="count",node="a\\"b"} 5.0' in text
    assert 'penstock_replica_behind_epochs{topology="count",replica="2"} 3.0' in text
    assert 'penstock_replicas_parked{topology="count"} 1.0' in text
    assert "penstock_epoch_seconds{topology=\"count\"} 0.25" in text
    told = set(re.findall(r"^(penstock_\w+)", text, re.MULTILINE))
    assert told == set(_HELP), "each has a sample here"
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == told


def test_the_dashboard_and_the_docs_know_the_figures_that_there_are() -> None:
    dashboard = json.loads((DOCS / "grafana/penstock.json").read_text())
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"penstock_\w+", target["expr"])}  # fmt: skip
    assert asked == set(_HELP)
    page = (DOCS / "console.md").read_text()
    assert [name for name in _HELP if f"`{name}" not in page] == []
