"""A state folder as a run leaves it, with Spark's state in RocksDB's files, made without Spark."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.runtime.state_folder import Committed, StateFolder

from .offset_log import write_commit, write_offsets


def record(epoch: int, last: bool = False) -> EpochRecord:
    return EpochRecord(epoch, 1000 + epoch, {"s": {"row": epoch}}, {"s": 1}, last=last)


def write_batch(checkpoint: Path, batch: int, partitions: int = 2, committed: bool = True) -> None:
    """One micro-batch; its epoch is its number and one."""
    entry = write_offsets(checkpoint, batch, record(batch + 1))
    version, metadata, *offsets = entry.read_text().splitlines()
    conf = json.loads(metadata) | {"conf": {"spark.sql.shuffle.partitions": str(partitions)}}
    entry.write_text("\n".join([version, json.dumps(conf), *offsets]))
    if committed:
        write_commit(checkpoint, batch)


def write_operator(checkpoint: Path, number: int, name: str = "stateStoreSave") -> None:
    """What Spark notes of a stateful operator when it starts."""
    state = checkpoint / "state" / str(number)
    metadata = {"operatorInfo": {"operatorId": number, "operatorName": name},
                "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2}]}
    _write(state / "_metadata" / "metadata", f"v1\n{json.dumps(metadata)}")
    _write(state / "0" / "_metadata" / "schema", "v2 schema")


def write_changes(store: Path, version: int) -> None:
    _write(store / f"{version}.changelog", f"changes of {version} in {store.name}")


def write_whole(store: Path, version: int, tables: Sequence[str] = ()) -> None:
    """RocksDB as a whole at a version; `tables` are the files that versions share."""
    files = [{"localFileName": name, "dfsSstFileName": f"{name}-shared.sst", "sizeBytes": 1} for name in tables]
    for file in files:
        _write(store / "SSTs" / str(file["dfsSstFileName"]), "table")
    store.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(store / f"{version}.zip", "w") as archive:
        archive.writestr("metadata", f"v1\n{json.dumps({'sstFiles': files, 'numKeys': -1})}")
        archive.writestr("CURRENT", "MANIFEST-000005\n")


def stored(
    folder: Path,
    batches: int = 3,
    operators: Sequence[str] = ("counts",),
    partitions: int = 2,
    of: Mapping[str, object] | None = None,
) -> StateFolder:
    """A state folder after so many committed epochs, with state in the form of changes; `of` is its shape."""
    state = StateFolder(folder)
    for batch in range(batches):
        write_batch(state.checkpoint, batch, partitions)
    for number, _ in enumerate(operators):
        write_operator(state.checkpoint, number)
        for partition in range(partitions):
            for batch in range(batches):
                write_changes(state.checkpoint / "state" / str(number) / str(partition), batch + 1)
    _write(state.checkpoint / "metadata", '{"id":"one"}')
    state.write_shape(json.dumps(of or shape(operators, partitions)))
    state.record(Committed(batches))
    write_log(state.coordinator, batches)
    return state


def shape(operators: Sequence[str], partitions: int = 2) -> Mapping[str, object]:
    return {
        "sources": {"s": {"kind": "file", "reads": "s.csv"}},
        "state": {name: {"kind": "count", "keys": ["word"], "emit": "changes"} for name in operators},
        "state partitions": partitions,
        "asked instances": None,
        "state ids": list(operators),
        "branches": [["s", *operators]],
        "acking": [],
    }


def write_log(address: str, epochs: int) -> None:
    coordinator = open_coordinator(address)
    log = EpochLog(coordinator)
    for number in range(epochs):
        log.propose(record(number + 1))
    coordinator.close()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
