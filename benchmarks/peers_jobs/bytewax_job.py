"""Bytewax in two processes. `bytewax_job.py WORK`; the dataflow is in `bytewax_flow.py`.

The clock runs from when the first process, connected to the other, opens its source, to the end of both. There is
nothing to warm up. Counts of words are kept by Bytewax's recovery, with a snapshot every second.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bytewax.recovery import init_db_dir
from work import CHECKPOINT_SECONDS, PARALLELISM, Work, read_work, report

HERE = Path(__file__).parent


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def recovery(work: Work) -> list[str]:
    if work.job not in ("word-count", "recovery"):
        return []
    folder = work.folder / "snapshots"
    if not folder.exists():
        folder.mkdir()
        init_db_dir(folder, PARALLELISM)
    return ["-r", str(folder), "-s", str(CHECKPOINT_SECONDS), "-b", "0"]


def main() -> None:
    work = read_work(sys.argv[1])
    work.out.mkdir(parents=True, exist_ok=True)
    addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(PARALLELISM))
    command = [sys.executable, "-m", "bytewax.run", "bytewax_flow:flow", "-a", addresses, *recovery(work)]
    environment = {**os.environ, "PEER_WORK": work.written(), "PYTHONPATH": str(HERE)}
    processes = [
        subprocess.Popen([*command, "-i", str(number)], env=environment, cwd=HERE) for number in range(PARALLELISM)
    ]
    codes = [process.wait() for process in processes]
    ended = time.monotonic()
    if any(codes):
        raise SystemExit(f"Bytewax's processes ended with {codes}")
    report(ended - min(float(file.read_text()) for file in work.folder.glob("opened-*")))


if __name__ == "__main__":
    main()
