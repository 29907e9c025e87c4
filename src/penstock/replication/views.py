"""The replicas of a topology as people see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.epochs.orders import EVERYTHING, Orders
from penstock.replication.lifecycle import Head, Phase, Sight, is_abreast, phase_of, safety, waits_at_head
from penstock.replication.roster import CHANGING, ENDED, FAILED, FROZEN, PARKED, Member, Told


@dataclass(frozen=True)
class ReplicaView:
    """One replica."""

    name: str
    cell: str
    phase: Phase
    epoch: int
    behind: int
    first: int
    """How many epochs it was the first to deliver."""
    why: str = ""
    """Why it has failed or is parked; of one that is frozen, which operators are, where it is not all of it."""
    process: int | None = None
    host: str = ""


def safety_of(views: list[ReplicaView]) -> str:
    """One line on all of them."""
    return safety([view.phase for view in views], max((view.behind for view in views), default=0))


def views_of(
    members: Mapping[str, Member], told: Mapping[str, Told], wanted: Iterable[str] = ()
) -> list[ReplicaView]:
    """What replicas have said of themselves, without a look at their processes.

    Where any has, those that are `wanted` and have said nothing yet are down: one of two alone is not safe.
    """
    head = Head(max((each.epoch for each in told.values()), default=0))
    known = {*members, *told}
    names = sorted(known.union(wanted)) if known else []
    return [_view(name, members.get(name), told.get(name), head) for name in names]


def with_frozen_operators(views: Iterable[ReplicaView], orders: Orders) -> list[ReplicaView]:
    """The same, and of those that are frozen for an operator which one; raises CoordinationError."""
    return [replace(view, why=why_frozen(orders.frozen(view.name))) if view.phase is Phase.FROZEN else view
            for view in views]  # fmt: skip


def why_frozen(operators: Iterable[str]) -> str:
    """Which operators are frozen, where it is not all of a replica."""
    names = sorted(operators)
    return "" if not names or EVERYTHING in names else f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} frozen"


def _view(name: str, member: Member | None, told: Told | None, head: Head) -> ReplicaView:
    current = told if told is not None and (member is None or told.run == member.run) else None
    epoch = current.epoch if current is not None else 0
    ended = current is not None and current.how == ENDED
    frozen = current is not None and current.how == FROZEN
    parked = current is not None and current.how == PARKED
    seen = Sight(alive=member is not None, epoch=epoch, ended=ended, frozen=frozen, parked=parked)
    if current is not None:
        seen = replace(seen, whole=current.whole, caught_up=current.caught_up, cold=current.cold,
                       changing=current.how == CHANGING, idle=current.idle)
    phase = phase_of(seen, head)
    why = current.why if current is not None and current.how in (FAILED, PARKED) else ""
    return ReplicaView(
        name, member.cell if member else "–", phase, seen.reached, head.epoch - epoch if epoch else 0,
        current.first if current else 0, why, member.process if member else None, member.host if member else "",
    )


def all_safe(names: Iterable[str], members: Mapping[str, Member], told: Mapping[str, Told], after: int = 0) -> bool:
    """Whether all of these replicas are there, have done an epoch after that one, and have caught up; or have ended.

    Where there is nothing to do, none after that one is waited for.
    """
    head = max((each.epoch for each in told.values()), default=0)

    def is_safe(name: str) -> bool:
        member, said = members.get(name), told.get(name)
        if said is None or said.how == ENDED:
            return said is not None
        if member is None or said.run != member.run or said.how == CHANGING:
            return False
        if not said.epoch:
            return waits_at_head(said.idle, max(head, after + 1))
        done = said.epoch > after or (said.idle is not None and said.idle >= after)
        return done and not said.cold and is_abreast(head - said.epoch, said.whole, said.caught_up)

    return all(is_safe(name) for name in names)
