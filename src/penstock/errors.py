"""Every error Penstock raises on purpose.

    PenstockError                 what was wrong, where, and what to do
    ├── TopologyError             the user's file is wrong (exit code 2)
    ├── ConnectorError            the outside world: a file, a server, a disk
    │   └── MalformedRecord       a record that does not fit its schema, with `on_malformed: fail`
    ├── OperatorError             the user's own code raised, hung, or returned the wrong shape
    ├── DeliveryError             an epoch could not be delivered as promised
    ├── CoordinationError         the coordinator is missing, lost, or held by another
    ├── EpochForgotten            an epoch that is to be done is too old for the log
    ├── ConsoleError              the console cannot do what it was asked
    │   ├── BundleError           the files of a topology cannot be sent or taken
    │   └── CommandRefused        a command that makes no sense as things are
    └── MachineError              this machine cannot run Penstock: no Java, too old a Java
"""

from __future__ import annotations


class PenstockError(Exception):
    """An error a user can act on: its message says what, where and what to do."""

    epoch: int | None = None
    """The epoch that failed with it, where one did."""


class TopologyError(PenstockError):
    """The topology is wrong; `problems` lists everything found, not only the first."""

    def __init__(self, message: str, problems: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class ConnectorError(PenstockError):
    """A source or sink cannot reach, read or write its part of the outside world."""


class MalformedRecord(ConnectorError):
    """A record does not fit its schema, and the source says `on_malformed: fail`."""


class OperatorError(PenstockError):
    """The user's own code raised, hung, exited, or returned the wrong shape."""


class DeliveryError(PenstockError):
    """An epoch could not be delivered as promised."""


class CoordinationError(PenstockError):
    """The coordinator is missing, lost, or held by another run."""


class EpochForgotten(PenstockError):
    """An epoch that is to be done was agreed so long ago that the log does not have it any more."""


class ConsoleError(PenstockError):
    """The console cannot do what it was asked."""


class BundleError(ConsoleError):
    """The files of a topology cannot be sent or taken."""


class CommandRefused(ConsoleError):
    """A command that makes no sense as things are; `missing` when it is for something that is not there."""

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class MachineError(PenstockError):
    """This machine lacks what Penstock needs."""
