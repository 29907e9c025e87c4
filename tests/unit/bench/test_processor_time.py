"""Processor time is counted also of processes that are gone, whoever has waited for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from penstock.bench.processor_time import ProcessorTime
from penstock.bench.sampling import ProcessSampler
from penstock.epochs.moments import TICKS_PER_SECOND, Process, processes_of


def process(pid: int, worked: int, waited_for: int = 0, parent: int = 1, born: int = 0) -> Process:
    return Process(pid, parent, 10, "python", worked, waited_for, born)


def ticks_after(*looks: list[Process]) -> int:
    time = ProcessorTime()
    for look in looks:
        time.look(look)
    return time.ticks()


def test_what_a_parent_has_waited_for_counts_though_nobody_saw_it() -> None:
    assert ticks_after([process(10, 5)], [process(10, 6, waited_for=30)]) == 36


def test_a_child_that_was_seen_and_waited_for_counts_once() -> None:
    seen = [process(10, 5), process(11, 20, parent=10)]
    assert ticks_after(seen) == 25
    assert ticks_after(seen, [process(10, 5, waited_for=22)]) == 27


def test_a_child_that_nobody_waited_for_counts_as_it_was_last_seen() -> None:
    assert ticks_after([process(10, 5), process(11, 20, parent=10)], [process(10, 6)]) == 26


def test_of_a_parent_that_is_gone_its_own_parent_has_everything() -> None:
    first = [process(10, 5), process(11, 20, parent=10), process(12, 40, parent=11)]
    second = [process(10, 5), process(11, 20, parent=10)]
    assert ticks_after(first, second, [process(10, 5)]) == 65
    assert ticks_after(first, second, [process(10, 5, waited_for=21)]) == 65


def test_a_process_that_has_lost_its_parent_counts_by_itself() -> None:
    first = [process(10, 5), process(11, 20, parent=10), process(12, 40, parent=11)]
    assert ticks_after(first, [process(10, 5, waited_for=20), process(12, 45, parent=1)], [process(10, 5, 20)]) == 70


def test_a_number_that_is_given_again_is_another_process() -> None:
    first = [process(10, 5), process(11, 20, parent=10, born=7)]
    assert ticks_after(first, [process(10, 5), process(11, 3, parent=10, born=9)]) == 28


CHILD = """
import os, time
began = time.process_time()
while time.process_time() - began < 0.3:
    pass
print("worked", flush=True)
os.read(0, 1)
"""
PARENT = """
import os, signal, subprocess, sys, time
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", sys.argv[2]])
if sys.argv[1] == "waited for":
    child.wait()
while os.path.exists(f"/proc/{child.pid}"):
    time.sleep(0.01)
print("done", flush=True)
os.read(0, 1)
"""


@pytest.fixture(params=["waited for", "ignored"])
def parent(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A job whose child works for 0.3 seconds; it is waited for, or treated as Spark's Python daemon treats its own."""
    command = [sys.executable, "-c", PARENT, request.param, CHILD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as made:
        yield made
        made.kill()


def test_the_time_of_a_real_child_that_is_gone_is_not_lost(parent: subprocess.Popen[str]) -> None:
    assert parent.stdin is not None
    assert parent.stdout is not None
    with ProcessSampler(parent.pid) as sampler:
        assert parent.stdout.readline() == "worked\n"
        while_alive = sampler.worked_seconds()
        parent.stdin.write("x")
        parent.stdin.flush()
        assert parent.stdout.readline() == "done\n"
        worked = sampler.worked_seconds()
    alive = processes_of(parent.pid)
    assert [one.pid for one in alive] == [parent.pid]
    # What is alive has hardly worked at all.
    assert worked - alive[0].worked / TICKS_PER_SECOND > 0.25
    assert worked >= while_alive
