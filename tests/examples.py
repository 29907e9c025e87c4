"""The examples, as the tests run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def copied_example(name: str, folder: Path) -> Path:
    """A copy of an example, without what earlier runs left in it."""
    left_by_runs = shutil.ignore_patterns("out", ".penstock", "dead-letters", "__pycache__")
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=left_by_runs))


def json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
