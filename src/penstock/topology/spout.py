"""Storm's spout made replayable: a class that can give its n-th tuple again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Spout:
    """Subclass it and write `emit_from`; write `ended` as well when there is an end."""

    def initialize(self, **arguments: Any) -> None:
        """Called once before anything else, with what the topology gives under `with`."""

    def emit_from(self, offset: int, limit: int) -> Iterable[Any]:
        """Up to `limit` tuples from the `offset`-th on, the same ones every time.

        Fewer than `limit` means that there are no more right now.
        """
        raise TypeError(f"{type(self).__name__} has no emit_from(self, offset, limit)")

    def ended(self, offset: int) -> bool:
        """Whether there is nothing from the `offset`-th tuple on and never will be."""
        return False
