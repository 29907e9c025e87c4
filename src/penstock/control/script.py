"""Carry out puppet-master commands, one after the other, on a running topology.

Only `Wait` waits; every other command is given and the next one follows. What is done is logged in the order in which
it is done, as the script writes it. A replica's number counts from 0 there and from 1 here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.errors import PenstockError
from penstock.topology.model import Command

_LOOK_SECONDS = 0.1


class Target(Protocol):
    """What commands are given to. Each may raise PenstockError, which says why it cannot be done."""

    def hold(self, operators: Sequence[str]) -> None:
        """Have these operators wait until they are started."""

    def start(self, operator: str) -> None: ...

    def interval(self, operator: str, seconds: float) -> None: ...

    def status(self) -> Sequence[str]:
        """Lines that say how everything is."""

    def crash(self, operator: str, replica: str) -> None: ...

    def freeze(self, operator: str, replica: str) -> None: ...

    def unfreeze(self, operator: str, replica: str) -> None: ...


def held_operators(commands: Sequence[Command]) -> list[str]:
    """Those that the commands start: they wait until then. All others run from the beginning."""
    return list(dict.fromkeys(command.arguments[0] for command in commands if command.verb == "Start"))


def last_given(commands: Sequence[Command]) -> int:
    """The number of the last command that is not a mere `Wait`; -1 where there is none."""
    return max((number for number, command in enumerate(commands) if command.verb != "Wait"), default=-1)


class ScriptRun:
    """One pass through the commands. `log` takes a line for each; `is_over` says that the topology has ended.

    `advance` is told how many were begun, before each is carried out (after it for `Wait`, which harms nobody twice);
    when it says False another process goes on with them.
    `when_given` is called when nothing is left but waiting.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        target: Target,
        log: Callable[[str], None],
        is_over: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        advance: Callable[[int], bool] = lambda _: True,
        when_given: Callable[[], None] = lambda: None,
    ) -> None:
        self._commands = list(commands)
        self._when_given = when_given
        self._target = target
        self._log = log
        self._is_over = is_over
        self._clock = clock
        self._sleep = sleep
        self._advance = advance
        self.failed = 0
        """How many commands could not be carried out."""

    def run(self, first: int = 0) -> None:
        """All commands from the `first` on, until the topology has ended."""
        last = last_given(self._commands)
        if first > last:
            self._when_given()
        for number, command in enumerate(self._commands[first:], first):
            if self._is_over():
                left = len(self._commands) - number
                self._log(f"% the topology has ended: {left} {'command is' if left == 1 else 'commands are'} left out")
                return
            self._log(str(command))
            waits = command.verb == "Wait"
            try:
                if not waits and not self._advance(number + 1):
                    why = "the topology has ended" if self._is_over() else "another process goes on with the script"
                    self._log(f"% not done: {why}")
                    return
                self._carry_out(command)
                if waits and not self._is_over():
                    self._advance(number + 1)
            except PenstockError as error:
                self.failed += 1
                self._log(f"% not done: {error}")
            if number == last:
                self._when_given()

    def _carry_out(self, command: Command) -> None:
        match command.verb, command.arguments:
            case "Wait", (milliseconds,):
                self._wait(float(milliseconds) / 1000)
            case "Status", ():
                for line in self._target.status():
                    self._log(f"% {line}")
            case "Start", (operator,):
                self._target.start(operator)
            case "Interval", (operator, milliseconds):
                self._target.interval(operator, float(milliseconds) / 1000)
            case "Crash", (operator, number):
                self._target.crash(operator, _replica(number))
            case "Freeze", (operator, number):
                self._target.freeze(operator, _replica(number))
            case "Unfreeze", (operator, number):
                self._target.unfreeze(operator, _replica(number))
            case _:
                raise PenstockError(f"'{command}' is no command")

    def _wait(self, seconds: float) -> None:
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._is_over():
            self._sleep(min(left, _LOOK_SECONDS))


def _replica(number: str) -> str:
    return str(int(number) + 1)
