"""Starting: Ctrl-C meanwhile, and what makes it fast."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS

PENSTOCK = Path(sys.executable).with_name("penstock")

TOPOLOGY = """
topology: numbers
sources:
  numbers: {generator: {n: sequence}, count: 10}
sinks:
  out: {from: numbers, file: out/numbers.jsonl}
"""


def test_a_run_that_is_interrupted_while_it_starts_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    process = subprocess.Popen(
        [PENSTOCK, "run"], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
        # Whoever runs the tests in the background has them ignore Ctrl-C, and processes inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert process.stdout is not None
    said = ""
    try:
        while "starting Spark" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert rest.splitlines() == ["error: interrupted before it began; the same command starts again"]
    # A JVM that is left behind keeps the topology's lock.
    wait_until(lambda: not holders_of(tmp_path / ".penstock" / "numbers" / "holder"))


def holders_of(file: Path) -> list[int]:
    """The processes that have a file open."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if descriptor.resolve() == file:
                found.append(int(descriptor.parts[2]))
    return found


def test_an_archive_of_classes_is_made_for_those_that_do_not_end(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    maker = [sys.executable, "-m", "penstock.spark.archive_maker"]
    subprocess.run(maker, env=environment, check=True, timeout=PATIENCE_SECONDS)
    asks = "from penstock.spark.archive_maker import is_wanted; raise SystemExit(is_wanted())"
    # Its JVM writes it while it ends.
    wait_until(lambda: subprocess.run([sys.executable, "-c", asks], env=environment).returncode == 0, PATIENCE_SECONDS)
    [archive] = (tmp_path / "penstock").glob("*.jsa")
    assert archive.stat().st_size > 100_000_000
    # There is one: nothing is left to do.
    subprocess.run(maker, env=environment, check=True, timeout=10)
