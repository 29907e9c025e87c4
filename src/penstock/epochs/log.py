"""The epoch log: records in the coordinator, one key each, the first proposal wins."""

from __future__ import annotations

from penstock.coordination.base import Coordinator
from penstock.epochs.record import EpochRecord

_PREFIX = "epochs/"
_PROGRESS = "progress/"


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

    def clear(self) -> None:
        """Forget every epoch and every replica's progress."""
        for prefix in (_PREFIX, _PROGRESS):
            for key in self._coordinator.list(prefix):
                self._coordinator.delete(key)

    def agreed(self) -> list[int]:
        """The numbers of the epochs in the log, in order."""
        return [int(key.removeprefix(_PREFIX)) for key in self._coordinator.list(_PREFIX)]

    def note_progress(self, replica: str, epoch: int) -> None:
        """Tell the others that this replica has committed `epoch` and will not ask for earlier ones again."""
        self._coordinator.put(_PROGRESS + replica, str(epoch))

    def progress(self) -> dict[str, int]:
        """By replica, the last epoch that it has noted."""
        noted = {key.removeprefix(_PROGRESS): self._coordinator.get(key) for key in self._coordinator.list(_PROGRESS)}
        return {replica: int(epoch) for replica, epoch in noted.items() if epoch is not None}

    def forget_unneeded(self, kept: int) -> None:
        """Remove the records that no replica needs: all but the last `kept` before the slowest one's progress."""
        oldest = min(self.progress().values(), default=0) - kept
        for number in self.agreed():
            if number > oldest:
                return
            self._coordinator.delete(_key(number))


def _key(epoch: int) -> str:
    return f"{_PREFIX}{epoch:012d}"
