"""The `penstock` command that is installed beside the Python of the tests."""

from __future__ import annotations

import sys
from pathlib import Path

PENSTOCK = Path(sys.executable).with_name("penstock")
PATIENCE_SECONDS = 240
"""A slow machine is no failure; a process that hangs is."""
