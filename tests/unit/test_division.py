"""Which tests run side by side in `make test`, and which by themselves."""

from __future__ import annotations

from pathlib import Path

SYSTEM = Path(__file__).parents[1] / "system"
SEVERAL_JVMS = ("from .replicated import", "from .running_console import", '"chaos"')
"""Replicas, a console with its topologies, a rehearsal of kills: what makes a test take both cores."""


def test_whoever_starts_several_jvms_runs_by_itself() -> None:
    several = {path.name: path.read_text() for path in SYSTEM.glob("test_*.py")
               if any(sign in path.read_text() for sign in SEVERAL_JVMS)}  # fmt: skip
    assert len(several) >= 7
    assert [name for name, text in several.items() if "pytestmark = pytest.mark.by_itself" not in text] == []
