"""The commands of the console, the same for the page, the API and the command line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from penstock.console.desired import Goal, Wanted
from penstock.errors import CommandRefused

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$")]
LetterId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{10}$")]
Duration = Annotated[str, StringConstraints(pattern=r"^(default|\d{1,6}(\.\d{1,3})?(ms|s|m|h)?)$")]


class Verb(StrEnum):
    """What can be done to a topology."""

    START = "start"
    STOP = "stop"
    KILL = "kill"
    RESTART = "restart"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    INTERVAL = "interval"
    CRASH = "crash"
    RESCALE = "rescale"
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    DEAD_LETTERS = "dead-letters"


class LetterAction(StrEnum):
    """What becomes of dead letters."""

    REPLAY = "replay"
    DISCARD = "discard"


_NEEDS = {
    Verb.INTERVAL: ("interval",),
    Verb.RESCALE: ("operator", "instances"),
    Verb.RESTORE: ("name",),
    Verb.DEAD_LETTERS: ("action",),
}
_MAY_HAVE = {
    Verb.FREEZE: ("replica", "operator"),
    Verb.UNFREEZE: ("replica", "operator"),
    Verb.INTERVAL: ("operator",),
    Verb.CRASH: ("replica",),
    Verb.CHECKPOINT: ("name", "delete"),
    Verb.RESTORE: ("fresh_sinks",),
    Verb.DEAD_LETTERS: ("operator", "letters"),
}


EVERYWHERE = (Verb.KILL, Verb.RESTART, Verb.RESCALE)
"""What each node does to its own replicas, where a topology's replicas are on several."""


ONE_BY_ONE = (Verb.RESTART, Verb.RESCALE)
"""What is done to one replica after the other, so that output does not pause."""


class Command(BaseModel):
    """A command for one topology."""

    model_config = ConfigDict(extra="forbid")

    verb: Verb
    replica: Name | None = Field(None, description="For freeze, unfreeze and crash: which replica; without it, all.")
    operator: Name | None = Field(
        None, description="For freeze, unfreeze, interval, rescale and dead-letters: an operator.")
    interval: Duration | None = Field(None, description="For interval: from epoch to epoch, `500ms`; or `default`.")
    instances: int | None = Field(None, ge=1, le=1000, description="For rescale: how many instances.")
    name: Name | None = Field(None, description="For checkpoint: what to call it; for restore: which one.")
    delete: Name | None = Field(None, description="For checkpoint: which one to remove, in place of taking one.")
    action: LetterAction | None = Field(None, description="For dead-letters: `replay` or `discard`.")
    fresh_sinks: bool | None = Field(None, description="For restore: whether the sinks' output begins anew.")
    letters: list[LetterId] | None = Field(None, max_length=100, description="For dead-letters: these; without, all.")

    @model_validator(mode="after")
    def _fits(self) -> Command:
        given = {key for key in Command.model_fields if key != "verb" and getattr(self, key) is not None}
        needed = _NEEDS.get(self.verb, ())
        missing = [key for key in needed if key not in given]
        extra = sorted(given - {*needed, *_MAY_HAVE.get(self.verb, ())})
        if missing:
            raise ValueError(f"{self.verb} needs {' and '.join(missing)}")
        if extra:
            raise ValueError(f"{self.verb} takes no {' and no '.join(extra)}")
        if {"name", "delete"} <= given:
            raise ValueError(f"{self.verb} takes name or delete: it takes one, or removes one")
        return self


def new_goal(command: Command, wanted: Wanted) -> Wanted:
    """What is wanted after a command; raises CommandRefused for one that makes no sense for this topology."""
    if command.verb is Verb.CRASH and not wanted.chaos:
        raise CommandRefused(
            f"'{wanted.name}' may not be crashed on purpose: say `chaos: allowed` in its file, and submit it again"
        )
    if wanted.goal is Goal.PAUSE and command.verb in (Verb.RESTORE, Verb.RESTART):
        raise busy(wanted.name)
    if command.verb is Verb.RESTART and (wanted.replicas < 2 or wanted.spread):
        # A node whose only replica could not go on has given up, and starts it again.
        return replace(wanted, goal=Goal.RUN, starts=wanted.starts + 1)
    if command.replica is not None and command.replica not in map(str, range(1, wanted.replicas + 1)):
        known = "1" if wanted.replicas == 1 else f"1 to {wanted.replicas}"
        raise CommandRefused(
            f"'{wanted.name}' has no replica '{command.replica}': its replicas are {known}", missing=True
        )
    match command.verb:
        case Verb.STOP | Verb.KILL:
            return replace(wanted, goal=Goal.STOP)
        case Verb.START:
            return replace(wanted, goal=Goal.RUN, starts=wanted.starts + 1)
        case _:
            return wanted


def paused(now: Wanted) -> Wanted:
    """Stopped for something that is done meanwhile; raises CommandRefused for one that is not to run."""
    if now.goal is Goal.PAUSE:
        raise busy(now.name)
    if now.goal is not Goal.RUN:
        raise CommandRefused(f"'{now.name}' was stopped meanwhile, and nothing else was done: try again")
    return replace(now, goal=Goal.PAUSE)


def busy(name: str) -> CommandRefused:
    return CommandRefused(f"something else is being done to '{name}', which was stopped for it: look at its events, "
                          "and try again when it runs")  # fmt: skip


def words_for(command: Command) -> Sequence[str] | None:
    """What stands behind `penstock VERB FILE`, for a command that a node carries out; None for one that is a goal."""
    options = [part for key in ("replica", "operator") if (value := getattr(command, key)) is not None
               for part in (f"--{key}", value)]  # fmt: skip
    match command.verb:
        case Verb.START | Verb.STOP:
            return None
        case Verb.INTERVAL:
            return [str(command.interval), *options]
        case Verb.RESCALE:
            return [f"{command.operator}={command.instances}"]
        case Verb.RESTORE:
            return [str(command.name), "--replace", *(["--fresh-sinks"] if command.fresh_sinks else [])]
        case Verb.DEAD_LETTERS:
            return [f"--{command.action}", *options, *(command.letters or ())]
        case Verb.CHECKPOINT:
            return [part for key in ("name", "delete") if (value := getattr(command, key)) is not None
                    for part in (f"--{key}", value)]  # fmt: skip
        case _:
            return options


def needs_it_stopped(command: Command) -> bool:
    """Whether it can only be done while the topology does not run: it is stopped for it, and started again."""
    return command.verb is Verb.RESTORE or command.action is LetterAction.REPLAY


def told(command: Command) -> str:
    """A command in words."""
    parts = [f"replica {command.replica}" if command.replica else "",
             f"operator {command.operator}" if command.operator else "",
             command.interval or "", f"{command.instances} instances" if command.instances else "",
             command.name or "", f"delete {command.delete}" if command.delete else "",
             command.action or ""]  # fmt: skip
    return " ".join([command.verb, *(part for part in parts if part)])
