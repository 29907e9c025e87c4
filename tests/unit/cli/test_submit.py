"""What `penstock submit` sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.console.client import Client

from .typed import enter_project, penstock

TOPOLOGY = """\
topology: count
sources: {ticks: {generator: {id: sequence}, count: 10}}
sinks: {out: {from: ticks, file: out/rows.jsonl}}
"""


def test_what_the_environment_sets_is_sent_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, TOPOLOGY)
    sent: list[Any] = []

    def submit(_: Client, packed: bytes, file: str, sets: list[str], *flags: bool) -> dict[str, Any]:
        sent.append((file, sets))
        return {"said": "it was submitted", "digest": "0" * 64}

    monkeypatch.setattr(Client, "submit", submit)
    monkeypatch.setenv("PENSTOCK_SETS", json.dumps(["sinks.out.file=out/secret.csv", "chaos=allowed"]))
    assert penstock("submit", "--set", "chaos=refused").exit_code == 0
    assert sent == [("topology.yaml", ["sinks.out.file=out/secret.csv", "chaos=refused"])]
