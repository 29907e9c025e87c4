"""Commands as a user types them in the folder of a topology."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app


def penstock(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, list(arguments))


def enter_project(folder: Path, monkeypatch: pytest.MonkeyPatch, topology: str, **inputs: str) -> None:
    """Write the topology and its CSV files, and go there."""
    (folder / "topology.yaml").write_text(topology)
    for name, text in inputs.items():
        (folder / f"{name}.csv").write_text(text)
    monkeypatch.delenv("PENSTOCK_COORDINATOR", raising=False)
    monkeypatch.chdir(folder)
