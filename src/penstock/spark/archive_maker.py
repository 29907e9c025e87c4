"""Make the archive of Spark's classes in a process of its own, beside a topology with replicas.

Where replicas are killed, no JVM comes to its end and writes it; and while it is written down which classes are loaded,
a replica takes three times as long to start. So a small topology is run in the background that does some of everything:
`python -m penstock.spark.archive_maker`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.class_archive import SWITCH, archive_path, cache_folder, is_there
from penstock.spark.java import check_java
from penstock.spark.plain_files import plain_files_jar

_TUPLES, _EPOCH = 90_000, 30_000
"""Some epochs, too large to be brought to the driver."""


def is_wanted() -> bool:
    """Whether there is no archive, and there may be one."""
    if os.environ.get(SWITCH) == "off":
        return False
    own = plain_files_jar()
    try:
        return own is not None and not is_there(archive_path(check_java(), [own]))
    except PenstockError:
        return False


def start_maker() -> subprocess.Popen[bytes]:
    """In a session of its own, so that it can be put behind all others."""
    command = [sys.executable, "-m", "penstock.spark.archive_maker"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)  # fmt: skip


def main() -> None:
    """Make it, unless somebody else on this machine is at it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "making.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        if is_wanted():
            with tempfile.TemporaryDirectory(prefix="penstock-archive-", ignore_cleanup_errors=True) as folder:
                _run_some_of_everything(Path(folder))


def _run_some_of_everything(folder: Path) -> None:
    from penstock import Topology
    from penstock.bench.custom_code import of_tuple
    from penstock.runtime.run import RunSettings, run_topology
    from penstock.topology.model import EpochSettings

    start = Topology("archive", epoch=EpochSettings(max_tuples=_EPOCH))
    numbers = start.source("numbers", generator={"id": "sequence"}, count=_TUPLES)
    payments = numbers.select("id", "id % 10 as user", "id % 7 as amount").filter("amount > 0")
    totals = payments.custom(of_tuple, keep="id", emits="total bigint").count("total")
    made = totals.sink("out", file=str(folder / "out.jsonl")).with_folder(folder)
    run_topology(made, RunSettings(state=folder / "state"))


if __name__ == "__main__":
    main()
