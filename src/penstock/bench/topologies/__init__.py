"""The topologies that `penstock bench` runs; each can be run by itself."""

from __future__ import annotations

from pathlib import Path


def topology_file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.yaml")
