"""Promises kept and broken under `kill -9`, with real runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from .penstock_command import PENSTOCK

PATIENCE_SECONDS = 900
"""A dozen starts of Spark on a busy machine; alone it takes about two minutes."""

WORD_COUNT = Path(__file__).resolve().parents[2] / "examples/word-count/topology.yaml"

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
TOPOLOGY = """\
topology: careless
delivery: exactly-once
sources: {numbers: {generator: {id: sequence}, count: 120}}
sinks: {kept: {from: numbers, custom: "careless:Careless"}}
"""


def chaos(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PENSTOCK, "chaos", *arguments], cwd=folder, text=True, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=PATIENCE_SECONDS, check=False)  # fmt: skip


def report_of(folder: Path) -> Any:
    return json.loads((folder / "chaos-report.json").read_text())


def test_word_count_keeps_exactly_once_under_kills(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = chaos(tmp_path, str(WORD_COUNT), "--kills", "2", "--seed", "7", "--keep", str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "words: lost 0, duplicated 0" in done.stdout
    assert "ignored: lost 0, duplicated 0" in done.stdout
    assert "exactly-once kept under 2 kills and 2 other disturbances" in done.stdout
    report = report_of(kept)
    assert [strike["done"] for strike in report["disturbed"]["strikes"]] == [True] * 4
    assert report["disturbed"]["starts"] == 4
    assert report["verdicts"][0]["rows"] == 16 * report["reference"]["epochs"]


def test_a_sink_that_ignores_the_epoch_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    (tmp_path / "careless.py").write_text(CARELESS)
    kept = tmp_path / "kept"
    done = chaos(tmp_path, "--kills", "1", "--seed", "1", "--keep", str(kept))
    assert done.returncode == 1, done.stdout + done.stderr
    (verdict,) = report_of(kept)["verdicts"]
    assert verdict["lost"] == 0
    assert verdict["duplicated"] > 0
    assert f"exactly-once was promised, and {verdict['duplicated']} rows were doubled" in done.stdout
    assert not (tmp_path / "careless.jsonl").exists()
