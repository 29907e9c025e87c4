"""How long the processors have worked for a job, also in processes that are gone. Pure.

The system adds the time of a process to that of its parent when the parent waits for it. Spark's Python daemon does not
wait for its workers, and nobody gets their time: so whoever looks often enough remembers it. Of what a parent has
waited for and what was seen of its children, the greater counts: both are too little, never too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.epochs.moments import Process

Key = tuple[int, int]
"""A process by its number and when it was born: numbers are given again."""


@dataclass(frozen=True)
class _Life:
    """A process as it was last seen."""

    process: Process
    parent: Key | None
    """None when it is none of the job's."""


class ProcessorTime:
    """Remembers what was seen of a job's processes, from look to look."""

    def __init__(self) -> None:
        self._lives: dict[Key, _Life] = {}
        self._alive: set[Key] = set()

    def look(self, alive: Sequence[Process]) -> None:
        """All that are alive now."""
        keys = {process.pid: (process.pid, process.born) for process in alive}
        for process in alive:
            self._lives[keys[process.pid]] = _Life(process, keys.get(process.parent))
        self._alive = set(keys.values())

    def ticks(self) -> int:
        """Of all processes together, up to the last look."""
        gone: defaultdict[Key, list[Key]] = defaultdict(list)
        for key, life in self._lives.items():
            if key not in self._alive and life.parent is not None:
                gone[life.parent].append(key)

        def spent(key: Key) -> int:
            process = self._lives[key].process
            return process.worked + max(process.waited_for, sum(map(spent, gone[key])))

        counted = [key for key, life in self._lives.items() if key in self._alive or life.parent is None]
        return sum(map(spent, counted))
