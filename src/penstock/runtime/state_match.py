"""Which state of a snapshot belongs to which operator of a topology that has changed since. Pure.

Operators are matched by name. What is not matched is told: state that nobody wants is left behind, and an operator
without state begins empty. State that does not fit the operator of its name is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.runtime.compatibility import Shape


@dataclass(frozen=True)
class StateMatch:
    """Spark's numbers of the new topology's state, and where each comes from."""

    taken: Mapping[int, int] = field(default_factory=dict)
    """By new number, the number in the snapshot."""
    empty: Mapping[int, str] = field(default_factory=dict)
    """By new number, the operators that begin empty."""
    left_behind: tuple[str, ...] = ()
    """The operators whose state nobody wants."""
    same_places: bool = True
    """Whether the new topology's plan has the same sources and state in the same places: nothing is to be moved."""

    def notes(self) -> list[str]:
        """What a user should know before anything starts."""
        begin = sorted(set(self.empty.values()))
        return [
            *(f"operator '{name}' is not in the topology any more: what it remembered is left behind"
              for name in self.left_behind),
            *(f"operator '{name}' is new: it begins empty" for name in begin),
        ]


def match_state(old: Shape, new: Shape) -> StateMatch:
    """Match by name; an operator that stands in several branches has a copy of its state in each."""
    before: list[str] = old["state ids"]
    now: list[str] = new["state ids"]
    places = ("state ids", "branches", "acking")
    return StateMatch(
        {number: before.index(name) for number, name in enumerate(now) if name in before},
        {number: name for number, name in enumerate(now) if name not in before},
        tuple(sorted(set(before) - set(now))),
        all(old.get(key) == new.get(key) for key in places) and list(old["sources"]) == list(new["sources"]),
    )


def misfits(old: Shape, new: Shape) -> list[str]:
    """Why the new topology cannot go on from the old one's snapshot, in the user's terms; nothing when it can."""
    said = [f"source '{name}' is new" for name in new["sources"] if name not in old["sources"]]
    said += [f"source '{name}' is gone" for name in old["sources"] if name not in new["sources"]]
    for name in (name for name in new["sources"] if name in old["sources"]):
        before, now = old["sources"][name]["kind"], new["sources"][name]["kind"]
        if before != now:
            said.append(f"source '{name}': kind was {before}, now {now}")
    for name in (name for name in new["state"] if name in old["state"]):
        before, now = old["state"][name], new["state"][name]
        said += [
            f"operator '{name}': {key} was {_shown(before.get(key))}, now {_shown(now.get(key))}; with another name it "
            "would begin empty"
            for key in now
            if before.get(key) != now.get(key)
        ]
    return said


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
