"""The epoch log: records in the coordinator, one key each, the first proposal wins."""

from __future__ import annotations

from penstock.coordination.base import Coordinator
from penstock.epochs.record import EpochRecord

_PREFIX = "epochs/"


class EpochLog:
    """The agreed epochs of one topology."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def get(self, epoch: int) -> EpochRecord | None:
        text = self._coordinator.get(_key(epoch))
        return None if text is None else EpochRecord.from_json(text)

    def propose(self, record: EpochRecord) -> EpochRecord:
        """Write the record unless the epoch is agreed already; return what is agreed."""
        return EpochRecord.from_json(self._coordinator.create_if_absent(_key(record.epoch), record.to_json()))

    def agreed(self) -> list[int]:
        """The numbers of the epochs in the log, in order."""
        return [int(key.removeprefix(_PREFIX)) for key in self._coordinator.list(_PREFIX)]

    def forget_before(self, epoch: int) -> None:
        """Remove the records of earlier epochs, which nobody needs any more."""
        for number in self.agreed():
            if number < epoch:
                self._coordinator.delete(_key(number))


def _key(epoch: int) -> str:
    return f"{_PREFIX}{epoch:012d}"
