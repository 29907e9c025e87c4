"""A process that comes after all others, and is raised again with all its threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from penstock.control.priority import can_be_raised, lower_session, lowered, raise_session

PROGRAM = """
import threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""


def test_every_thread_of_a_process_is_raised_again_by_those_who_may() -> None:
    command = lowered([sys.executable, "-c", PROGRAM])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        threads = [int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir()]
        assert len(threads) == 4
        own = os.getpriority(os.PRIO_PROCESS, 0)
        low = min(own + 5, 19) if os.geteuid() == 0 else own
        assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {low}
        group = Path(f"/proc/{process.pid}/autogroup")
        lower_session(process.pid)
        assert not group.exists() or group.read_text().split()[-1] == "5"
        raise_session(process.pid)
        assert not group.exists() or group.read_text().split()[-1] == "0"
        after = {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
        assert after == {own}
        assert can_be_raised() or low == own
    finally:
        process.kill()
        process.wait()
