"""Promises kept and broken under `kill -9`, with real runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..examples import copied_example
from .penstock_command import PENSTOCK

pytestmark = pytest.mark.by_itself

PATIENCE_SECONDS = 900
"""Five starts of Spark on a busy machine; alone it takes about a minute."""

CARELESS = """\
import json
from penstock.connectors.base import EVERY_GUARANTEE, SinkConnector, Staged
import pyarrow as pa


class Careless(SinkConnector):
    \"\"\"Says that it keeps every guarantee, and appends whatever it is given, whichever epoch it is.\"\"\"

    keeps = EVERY_GUARANTEE

    def __init__(self, path):
        self.path = path

    @classmethod
    def configure(cls, place, options):
        return cls(place.resolve("careless.jsonl"))

    def redirected(self, folder):
        return Careless(folder / "careless.jsonl")

    def open(self, fresh):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.path.write_text("")

    def stage(self, batches):
        rows = [row for batch in batches for row in batch.to_pylist()]
        return Staged(len(rows), {"rows": rows})

    def commit(self, epoch, staged):
        with self.path.open("a") as file:
            for part in staged:
                file.writelines(json.dumps(row) + "\\n" for row in part.detail.get("rows", ()))

    def read_back(self):
        yield pa.RecordBatch.from_pylist([json.loads(line) for line in self.path.read_text().splitlines()])
"""
CARELESS_SINK = '  careless: {from: counts, custom: "careless:Careless"}\n'


def test_word_count_keeps_exactly_once_under_kills_and_a_sink_that_ignores_the_epoch_is_found_out(
    tmp_path: Path,
) -> None:
    example = copied_example("word-count", tmp_path)
    (example / "careless.py").write_text(CARELESS)
    topology = (example / "topology.yaml").read_text()
    (example / "topology.yaml").write_text(topology.replace("sinks:\n", f"sinks:\n{CARELESS_SINK}"))
    kept = tmp_path / "kept"
    done = subprocess.run(
        [PENSTOCK, "chaos", "--kills", "2", "--seed", "7", "--keep", str(kept)], cwd=example, text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((kept / "chaos-report.json").read_text())
    assert [strike["done"] for strike in report["disturbed"]["strikes"]] == [True] * 4
    assert report["disturbed"]["starts"] == 4
    assert report["disturbed"]["troubles"] == []
    assert "words: lost 0, duplicated 0" in done.stdout
    assert "ignored: lost 0, duplicated 0" in done.stdout
    verdicts = {verdict["sink"]: verdict for verdict in report["verdicts"]}
    assert verdicts["words"]["rows"] == 16 * report["reference"]["epochs"]
    careless = verdicts["careless"]
    assert careless["lost"] == 0
    assert careless["duplicated"] > 0
    breach = f"sink 'careless': exactly-once was promised, and {careless['duplicated']} rows were doubled"
    assert [line for line in done.stdout.splitlines() if "promised" in line] == [f"broken: {breach}"]
    assert not (example / "careless.jsonl").exists()
