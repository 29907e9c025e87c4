"""The dead letters of a topology: to look at, to be replayed, or to be done with.

They stay in their file, which the topology writes to. What became of one later stands beside it, in `.<file>.settled`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from penstock.connectors.base import Place
from penstock.connectors.file_sink import FileSink
from penstock.connectors.registry import sink_connector
from penstock.coordination.base import MAX_VALUE_BYTES
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.postponed import Origin, Span, asked_after
from penstock.errors import DeliveryError
from penstock.runtime.state_folder import StateFolder
from penstock.topology.dead_letters import dead_letter_sink, why_not_replayed
from penstock.topology.model import Topology

_ID_DIGITS = 10
REPLAYED, DISCARDED = "replayed", "discarded"


@dataclass(frozen=True)
class Buried:
    """One dead letter."""

    id: str
    """Of what it says, so that it is the same whenever one looks."""
    fields: Mapping[str, Any]
    """As it stands in the file; see docs/failures.md."""

    @property
    def where(self) -> str:
        """The operator, or the source of a malformed record."""
        return str(self.fields.get("operator") or self.fields.get("source"))

    @property
    def what(self) -> str:
        """The tuple, or the record as it was read."""
        tup = self.fields.get("tuple")
        return str(self.fields.get("raw", "")) if tup is None else json.dumps(tup, ensure_ascii=False)


class Graveyard:
    """The dead letters of one topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        item = dead_letter_sink(topology)
        sink = sink_connector(item, Place(topology.name, item.name, topology.folder.absolute()))
        assert isinstance(sink, FileSink), "dead letters go to a file"
        self._sink = sink
        self.path = sink.path

    def letters(self, operator: str | None = None, ids: Sequence[str] = ()) -> list[Buried]:
        """Those nothing has become of yet, the oldest first; of one operator or source, or with these ids only."""
        settled = set(self._settled())
        found = [letter for letter in self._all() if letter.id not in settled
                 and (operator is None or letter.where == operator) and (not ids or letter.id in ids)]  # fmt: skip
        missing = [each for each in ids if each not in {letter.id for letter in found}]
        if missing:
            raise DeliveryError(f"'{self.topology.name}' has no dead letter {', '.join(missing)}: look at those that "
                                "there are with `penstock dead-letters`")  # fmt: skip
        return found

    def discard(self, letters: Iterable[Buried]) -> None:
        """Be done with these: they are not shown any more."""
        self._settle(letters, DISCARDED)

    def replay(self, letters: Sequence[Buried], state: StateFolder, coordinator: str, spread: bool = False) -> int:
        """Have the source tuples of these replayed right after the last epoch, when it is started again; how many.

        With `spread` other nodes have replicas, too, and nobody here knows how far they are. Raises DeliveryError, and
        does nothing, when one cannot be replayed, or the topology runs or has ended.
        """
        wanted = dict(self._source_tuple(letter) for letter in letters)
        committed = state.furthest().committed()
        self._refuse_ended(committed.ended)
        if state.to_restore().forget:
            raise DeliveryError(f"'{self.topology.name}' was restored and has not run since: start and stop it first")
        with ExitStack() as held:
            for each in (state, *state.replicas().values()):
                held.enter_context(each.held())
            opened = open_coordinator(coordinator)
            held.callback(opened.close)
            log = EpochLog(opened)
            self._ask(log, self._last_of_all(log) if spread else committed.epoch, wanted)
            self._settle(letters, REPLAYED)
        return len(wanted)

    def _refuse_ended(self, ended: bool) -> None:
        if ended:
            raise DeliveryError(f"'{self.topology.name}' has come to the end of its input, and the next run begins "
                                "anew: its tuples are all read again then")  # fmt: skip

    def _last_of_all(self, log: EpochLog) -> int:
        """The last epoch that any replica has delivered, as they have told each other; 0: none."""
        newest = log.newest()
        if newest is None:
            return 0
        self._refuse_ended(newest.last)
        return newest.epoch if log.delivered_by(newest.epoch) is not None else newest.epoch - 1

    def _ask(self, log: EpochLog, epoch: int, wanted: Mapping[tuple[int, Origin], Span]) -> None:
        if epoch and log.get(epoch) is None:
            raise DeliveryError(f"the epoch log that was given does not know epoch {epoch} of '{self.topology.name}': "
                                "give the --coordinator that it runs with")  # fmt: skip
        if log.get(epoch + 1) is not None:
            raise DeliveryError(f"epoch {epoch + 1} of '{self.topology.name}' was begun and not finished: start it, "
                                "`penstock unfreeze` it where it is frozen, stop it with `penstock stop` when it has "
                                "done what it had received, and replay then")  # fmt: skip
        if len(asked_after(epoch, wanted).to_json()) > MAX_VALUE_BYTES:
            raise DeliveryError(f"{len(wanted):,} tuples are too many for one epoch: replay those of one operator, or "
                                "some by their ids")  # fmt: skip
        log.ask(epoch, wanted)

    def _source_tuple(self, letter: Buried) -> tuple[tuple[int, Origin], Span]:
        fields = letter.fields
        why = why_not_replayed(self.topology, letter.where)
        names = [source.name for source in self.topology.sources]
        if not why and fields.get("span") is None:
            why = "it is of a timer, of a state, or of an older Penstock, and nothing says where to read it"
        if not why and fields["source"] not in names:
            why = f"the source '{fields['source']}' is not there any more"
        if why:
            raise DeliveryError(f"dead letter {letter.id}, of '{letter.where}', cannot be replayed: {why}")
        begin, end, slices = fields["span"]
        origin = Origin(fields["read_in_epoch"], fields["position"])
        return (names.index(fields["source"]), origin), Span(begin, end, slices)

    def _all(self) -> Iterator[Buried]:
        for batch in self._sink.read_back():
            for line in batch.column("line").to_pylist():
                yield Buried(hashlib.sha256(line.encode()).hexdigest()[:_ID_DIGITS], json.loads(line))

    def _settled(self) -> Iterator[str]:
        if self._sink.settled.exists():
            for line in self._sink.settled.read_text(encoding="utf-8").splitlines():
                yield json.loads(line)["id"]

    def _settle(self, letters: Iterable[Buried], how: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._sink.settled.open("a", encoding="utf-8") as out:
            for letter in letters:
                out.write(json.dumps({"id": letter.id, "how": how, "at": moment}) + "\n")
            out.flush()
            os.fsync(out.fileno())
