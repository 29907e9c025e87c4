"""Which tests run side by side in `make test`, and which by themselves."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEM = Path(__file__).parents[1] / "system"
SEVERAL_JVMS = re.compile(
    r'from \.replicated import|from \.running_console import .*\b(console|Supervisor|kill_topologies)\b|"chaos"'
)
"""Replicas, a console with its topologies, a rehearsal of kills: what makes a test take both cores. A master
alone, with a node that is made up, starts no JVM."""


def test_whoever_starts_several_jvms_runs_by_itself() -> None:
    several = {path.name: path.read_text() for path in SYSTEM.glob("test_*.py")
               if SEVERAL_JVMS.search(path.read_text())}  # fmt: skip
    assert len(several) >= 7
    assert [name for name, text in several.items() if "pytestmark = pytest.mark.by_itself" not in text] == []
