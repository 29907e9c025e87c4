"""The epoch log: records in the coordinator, one key each, the first proposal wins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from penstock.coordination.base import Coordinator
from penstock.epochs.postponed import MAX_BACK_OFF, Origin, Postponed, Span, asked_after
from penstock.epochs.record import EpochRecord
from penstock.errors import EpochForgotten

_PREFIX = "epochs/"
_POSTPONED = "postponed/"
_ASKED = "asked/"
_PROGRESS = "progress/"
_DELIVERED = "delivered/"
_BEGUN = "begun/"
_FORGOTTEN = "forgotten"


class EpochLog:
    """The agreed epochs of one topology."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._postponed: dict[str, Postponed] = {}

    def get(self, epoch: int) -> EpochRecord | None:
        text = self._coordinator.get(_key(epoch))
        return None if text is None else EpochRecord.from_json(text)

    def propose(self, record: EpochRecord) -> EpochRecord:
        """Write the record unless the epoch is agreed already; return what is agreed.

        Raises EpochForgotten for one that was agreed and is not in the log any more: it must not be cut a second time.
        """
        key = _key(record.epoch)
        agreed = self._coordinator.create_if_absent(key, record.to_json())
        # Afterwards: whoever was frozen just before it wrote could not have known.
        if record.epoch <= self.forgotten():
            self._coordinator.delete(key)
            raise EpochForgotten(
                f"epoch {record.epoch} was agreed long ago, and all records up to epoch {self.forgotten()} are gone: a "
                "replica begins with a sibling's checkpoint when it is started again; without replicas, restore a "
                "checkpoint, or begin anew with --fresh"
            )
        return EpochRecord.from_json(agreed)

    def forgotten(self) -> int:
        """The newest epoch whose record was removed; 0 while there is none."""
        return int(self._coordinator.get(_FORGOTTEN) or 0)

    def clear(self) -> None:
        """Forget every epoch and every replica's progress."""
        for prefix in (_PREFIX, _POSTPONED, _ASKED, _PROGRESS, _DELIVERED, _BEGUN):
            for key in self._coordinator.list(prefix):
                self._coordinator.delete(key)
        self._coordinator.delete(_FORGOTTEN)

    def postpone(self, postponed: Postponed) -> Postponed:
        """Settle what an epoch does without, unless that is settled already; return what is agreed."""
        key = _key(postponed.epoch, _POSTPONED)
        return Postponed.from_json(self._coordinator.create_if_absent(key, postponed.to_json()))

    def postponed(self, epoch: int) -> Postponed | None:
        """What is agreed that the epoch does without; None while that is open."""
        return self._read_postponed(_key(epoch, _POSTPONED))

    def ask(self, epoch: int, wanted: Mapping[tuple[int, Origin], Span]) -> None:
        """Have source tuples replayed right after an epoch; see `asked_after`.

        Nobody may run: it must be the last epoch, so that the next one is cut with them by everybody.
        """
        key = _key(epoch, _ASKED)
        while True:
            text = self._coordinator.create_if_absent(key, asked_after(epoch, wanted).to_json())
            before = Postponed.from_json(text)
            asked = asked_after(epoch, wanted, before)
            if asked == before or self._coordinator.replace(key, text, asked.to_json()):
                return

    def all_postponed(self) -> list[Postponed]:
        """What every epoch did without, and what was asked for after it, as far back as anything may still have to be
        replayed. Each is read once."""
        known = self._postponed
        self._postponed = {}
        for key in (key for prefix in (_POSTPONED, _ASKED) for key in self._coordinator.list(prefix)):
            found = known.get(key) or self._read_postponed(key)
            if found is not None:
                self._postponed[key] = found
        return list(self._postponed.values())

    def _read_postponed(self, key: str) -> Postponed | None:
        text = self._coordinator.get(key)
        return None if text is None else Postponed.from_json(text)

    def exported(self, epoch: int) -> list[str]:
        """What is known of the epochs up to that one, each entry as a line that `imported` takes."""
        keys = [key for prefix in (_PREFIX, _POSTPONED, _ASKED) for key in self._coordinator.list(prefix)
                if int(key.removeprefix(prefix)) <= epoch]
        found = {key: self._coordinator.get(key) for key in keys}
        return [json.dumps([key, value]) for key, value in found.items() if value is not None]

    def imported(self, lines: Iterable[str]) -> None:
        """Take in what another log has exported; what is agreed here already stays."""
        for line in lines:
            self._coordinator.create_if_absent(*json.loads(line))

    def agreed(self) -> list[int]:
        """The numbers of the epochs in the log, in order."""
        return [int(key.removeprefix(_PREFIX)) for key in self._coordinator.list(_PREFIX)]

    def newest(self) -> EpochRecord | None:
        """The last epoch that is agreed."""
        agreed = self.agreed()
        return self.get(agreed[-1]) if agreed else None

    def delivered_by(self, epoch: int) -> str | None:
        """The replica that has delivered the epoch to all sinks; None while nobody says so."""
        return self._coordinator.get(_key(epoch, _DELIVERED))

    def delivered(self, epoch: int, replica: str) -> str:
        """Say that this replica has delivered the epoch; return the first that said so."""
        return self._coordinator.create_if_absent(_key(epoch, _DELIVERED), replica)

    def begins(self, epoch: int, who: str) -> bool:
        """Whether it is this one who delivers an epoch that nobody may deliver twice: the first that asks.

        Nobody, where it was forgotten who has.
        """
        key = _key(epoch, _BEGUN)
        is_first = self._coordinator.create_if_absent(key, who) == who
        # Afterwards: whoever was frozen just before it asked could not have known.
        if epoch <= self.forgotten():
            self._coordinator.delete(key)
            return False
        return is_first

    def forget_deliveries(self) -> None:
        """Nobody says any more who has delivered what: each sink finds out for itself what it has."""
        for prefix in (_DELIVERED, _BEGUN):
            for key in self._coordinator.list(prefix):
                self._coordinator.delete(key)

    def deliveries(self, last: int) -> dict[int, str]:
        """By epoch, in order, the replica that delivered it; of so many of the last that are still known."""
        # Not all entries: there may be many, and with some coordinators each is asked for by itself.
        found = {key: self._coordinator.get(key) for key in self._coordinator.list(_DELIVERED)[-last:]}
        return {int(key.removeprefix(_DELIVERED)): replica for key, replica in found.items() if replica is not None}

    def only_replicas(self, names: Iterable[str]) -> None:
        """All others are gone for good: what they have noted holds no records back."""
        for replica in self.progress().keys() - set(names):
            self._coordinator.delete(_PROGRESS + replica)

    def forget_replica(self, name: str) -> None:
        """It will not go on from where it is: what it has noted holds no records back."""
        self._coordinator.delete(_PROGRESS + name)

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
        unneeded = [number for number in self.agreed() if number <= oldest]
        if unneeded:
            self._note_forgotten(unneeded[-1])
        for number in unneeded:
            self._coordinator.delete(_key(number))
        for prefix in (_DELIVERED, _BEGUN):
            for key in self._coordinator.list(prefix):
                if int(key.removeprefix(prefix)) > oldest:
                    break
                self._coordinator.delete(key)
        for prefix in (_POSTPONED, _ASKED):
            for key in self._coordinator.list(prefix):
                # By then the last of its tuples has been replayed.
                if int(key.removeprefix(prefix)) + MAX_BACK_OFF > oldest:
                    break
                self._coordinator.delete(key)

    def _note_forgotten(self, epoch: int) -> None:
        """Before any record goes, so that nobody takes an epoch for one that was never agreed."""
        while (known := self._coordinator.create_if_absent(_FORGOTTEN, str(epoch))) != str(epoch):
            if int(known) > epoch or self._coordinator.replace(_FORGOTTEN, known, str(epoch)):
                return


def _key(epoch: int, prefix: str = _PREFIX) -> str:
    return f"{prefix}{epoch:012d}"
