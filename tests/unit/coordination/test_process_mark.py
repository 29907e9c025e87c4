from __future__ import annotations

import subprocess
import sys

from penstock.coordination.process_mark import is_gone, mark_of_this_process

from ...waiting import wait_until


def test_this_process_is_not_gone() -> None:
    assert not is_gone(mark_of_this_process())


def test_a_killed_process_is_gone_even_before_its_parent_looks() -> None:
    program = (
        "import sys; from penstock.coordination.process_mark import mark_of_this_process as mark; "
        "print(mark(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        mark = process.stdout.readline().strip()
        assert not is_gone(mark)
        process.kill()
        wait_until(lambda: is_gone(mark))
        process.wait()
        assert is_gone(mark)


def test_a_later_process_with_the_same_id_is_another() -> None:
    space, pid, started = mark_of_this_process().split(" ")
    assert is_gone(f"{space} {pid} {int(started) - 1}")


def test_a_process_of_another_machine_cannot_be_judged() -> None:
    _, pid, started = mark_of_this_process().split(" ")
    assert not is_gone(f"elsewhere {pid} {int(started) - 1}")
    assert not is_gone("")
