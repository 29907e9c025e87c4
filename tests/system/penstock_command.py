"""The `penstock` command that is installed beside the Python of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PENSTOCK = Path(sys.executable).with_name("penstock")
PATIENCE_SECONDS = 240
"""A slow machine is no failure; a process that hangs is."""


def run_penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run([PENSTOCK, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS, check=False)  # fmt: skip
