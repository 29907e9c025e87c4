from __future__ import annotations

from pathlib import Path

import pytest

from .visits import VISITS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the data that the configurations read."""
    (tmp_path / "visits.dat").write_text(VISITS)
    return tmp_path
