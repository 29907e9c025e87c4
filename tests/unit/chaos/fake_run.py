"""Stands in for `penstock run`: the same processes, files and moments, without Spark.

    fake_run.py EPOCHS [doubling] [deaf] [seen=FILE] --state FOLDER --scratch FOLDER
    fake_run.py EPOCHS … rescale … OPERATOR=N --state FOLDER

The driver starts a process called java, which starts a Python worker. Each epoch adds one row to
`rows.jsonl`; with `doubling`, an epoch that is processed again adds it again. With `seen`, each epoch waits until the
file names it. A rescale is answered after the epoch; with `deaf`, never. The second form stands in for `penstock
rescale`, and leaves what was asked for in `rescaled`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from penstock.epochs.moments import Moment, reach
from penstock.runtime.rescale_request import Reply, reply, take_request
from penstock.runtime.state_folder import Committed, StateFolder

EPOCH_SECONDS = 0.01
PATIENCE_SECONDS = 30.0
MOST_INSTANCES = 99


def fork(name: str, main: Callable[[int, int], None], *inherited: int) -> tuple[int, int]:
    """A child that reads requests and writes answers: the ends with which to ask it."""
    (requests, asking), (answers, answering) = os.pipe(), os.pipe()
    if not os.fork():
        for end in (asking, answers, *inherited):
            os.close(end)
        Path("/proc/self/comm").write_text(name)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        main(requests, answering)
        os._exit(0)
    os.close(requests)
    os.close(answering)
    return asking, answers


def work(requests: int, answers: int) -> None:
    """The worker: answers each epoch after its task, until its asker is gone."""
    while request := os.read(requests, 8):
        reach(Moment.DURING_TASK, int.from_bytes(request))
        time.sleep(EPOCH_SECONDS)
        os.write(answers, request)


def relay(requests: int, answers: int) -> None:
    """The JVM: hands on what it is asked, until either side is gone."""
    asking, answered = fork("python3", work, requests, answers)
    while request := os.read(requests, 8):
        os.write(asking, request)
        answer = os.read(answered, 8)
        if not answer:
            return
        os.write(answers, answer)


class Driver:
    def __init__(
        self, epochs: int, doubling: bool, deaf: bool, seen: Path | None, state: Path, scratch: Path
    ) -> None:
        self.epochs, self.doubling, self.deaf, self.seen = epochs, doubling, deaf, seen
        self.state = StateFolder(state)
        self.rows = scratch / "rows.jsonl"
        self.stopping = False
        scratch.mkdir(parents=True, exist_ok=True)
        (state / "checkpoint/offsets").mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        asking, answers = fork("java", relay)
        for epoch in range(self.state.committed().epoch + 1, self.epochs + 1):
            self.log_offsets(epoch)
            reach(Moment.AFTER_OFFSETS, epoch)
            self.ask_worker(asking, answers, epoch)
            self.commit(epoch)
            reach(Moment.BETWEEN_SINKS, epoch)
            self.state.record(Committed(epoch, epoch == self.epochs))
            reach(Moment.BEFORE_COMMIT_LOG, epoch)
            self.wait_to_be_seen(epoch)
            self.rescale(epoch)
            if self.stopping:
                return

    def wait_to_be_seen(self, epoch: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.seen is not None and not self.stopping and time.monotonic() < deadline:
            if self.seen.exists() and int(self.seen.read_text() or "0") >= epoch:
                return
            time.sleep(0.001)

    def rescale(self, epoch: int) -> None:
        request = None if self.deaf else take_request(self.state)
        if request is not None and request.instances > MOST_INSTANCES:
            reply(self.state, request, Reply(refused="so many cannot be"))
        elif request is not None:
            done = {"epoch": epoch, "before": 2, "after": request.instances, "operators": [request.operator],
                    "stopped": False, "went_on": True}
            reply(self.state, request, Reply(done=done))

    def log_offsets(self, epoch: int) -> None:
        logged = self.state.checkpoint / "offsets"
        if any(file.read_text() != "whole" for file in logged.iterdir()):
            sys.exit("error: the offset log is damaged: put it back")
        # Whole or not at all, as Spark does it: a kill must not damage what only a disturbance may damage.
        written = self.state.checkpoint / "entry"
        written.write_text("whole")
        written.replace(logged / str(epoch))

    def ask_worker(self, requests: int, answers: int, epoch: int) -> None:
        try:
            os.write(requests, epoch.to_bytes(8))
            answered = os.read(answers, 8)
        except BrokenPipeError:
            answered = b""
        if not answered:
            sys.exit("error: a process of Spark's is gone")

    def commit(self, epoch: int) -> None:
        written = self.rows.read_text().splitlines() if self.rows.exists() else []
        if self.doubling or len(written) < epoch:
            with self.rows.open("a") as file:
                file.write(json.dumps({"epoch": epoch}) + "\n")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "failing" in arguments:
        sys.exit("error: this never works")
    if "hanging" in arguments:
        time.sleep(600)
    place = arguments.index("--state")
    if "rescale" in arguments:
        Path(arguments[place + 1], "rescaled").write_text(arguments[place - 1])
        sys.exit("error: it cannot be" if "refusing" in arguments else 0)
    files = [Path(each.removeprefix("seen=")) for each in arguments if each.startswith("seen=")]
    state, scratch = Path(arguments[place + 1]), Path(arguments[place + 3])
    seen = files[0] if files else None
    Driver(int(arguments[0]), "doubling" in arguments, "deaf" in arguments, seen, state, scratch).run()
