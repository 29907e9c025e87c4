"""What a run of several replicas logs, in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Topology
from penstock.cli.display import JsonDisplay
from penstock.cli.replicas import log_in_time_order
from penstock.connectors.shown_rows import ShownRows, shown_sink


def test_what_was_delivered_before_a_command_is_in_the_log_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = Topology("t").source("s", rows=[], schema="a int").sink("out", console=True)
    sink = shown_sink(topology.sinks[0], topology, tmp_path)
    sink.open(fresh=True)
    rows, display = ShownRows(topology, tmp_path), JsonDisplay(topology, lambda _: [])
    for epoch, line in ((4, "Freeze OP1 0"), (5, "Unfreeze OP1 0")):
        sink.commit(epoch, [sink.stage(iter([pa.RecordBatch.from_pydict({"line": [f'{{"a":{epoch}}}\n']})]))])
        log_in_time_order(rows, display, line)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["event"], line.get("epoch"), line.get("line")) for line in told] == [
        ("row", 4, None), ("log", None, "Freeze OP1 0"), ("row", 5, None), ("log", None, "Unfreeze OP1 0")
    ]  # fmt: skip
