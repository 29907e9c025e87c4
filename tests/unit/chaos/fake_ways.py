"""How a trial starts the stand-in for `penstock run`, which waits until the trial has seen each of its epochs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from penstock.chaos.trial import Scene, Strike, Ways

FAKE = Path(__file__).with_name("fake_run.py")


def fake_ways(
    folder: Path,
    *arguments: str,
    patience: float = 30.0,
    look: Callable[[Scene], None] = lambda _: None,
    tell: Callable[[Strike], None] = lambda _: None,
) -> Ways:
    """Without waiting the run could be at its end before a blow falls, on a busy machine."""
    seen = folder / "seen"

    def note(scene: Scene) -> None:
        seen.write_text(str(scene.epoch))
        look(scene)

    stand_in = [sys.executable, str(FAKE), *arguments]
    return Ways([*stand_in, f"seen={seen}"], patience, note, tell, [*stand_in, "rescale"])
