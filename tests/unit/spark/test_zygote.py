"""The zygote with real processes: a parent that starts one, and launchers that are run as Spark runs Python."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.spark.zygote import clear_leftovers

from ...waiting import PATIENCE_SECONDS, wait_until

# Keeps a lock until it has a zygote, says where the launcher is, lets go of the lock, and waits to be ended.
_PARENT = """\
import fcntl, os, sys
from penstock.spark.zygote import zygote_launcher

held = open(sys.argv[1], "w")
os.set_inheritable(held.fileno(), True)
fcntl.flock(held, fcntl.LOCK_EX)
print(zygote_launcher(), flush=True)
assert zygote_launcher() == zygote_launcher()
sys.stdin.readline()
held.close()
print("let go", flush=True)
sys.stdin.read()
"""

# What Spark would ask for: reports all that it was given, and is told on its standard input how to go on.
_MODULE = """\
import json, os, sys

print(json.dumps({
    "arguments": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "environment": dict(os.environ),
    "pid": os.getpid(), "parent": os.getppid(), "open": sorted(os.listdir("/proc/self/fd")),
    "hash": hash("text"),
    "imported": [name for name in ("pyspark.worker", "penstock.spark.daemon") if name in sys.modules],
}), flush=True)
print("an error line", file=sys.stderr)
order = sys.stdin.readline().strip()
if order == "raise":
    raise ValueError("by order")
if order == "say no":
    sys.exit("no")
if order == "die":
    print("last words", end="")
    print("last error", file=sys.stderr)
    os.kill(os.getpid(), 9)
print(f"got {order!r}")
sys.exit(int(order or 0))
"""


@dataclass
class Parent:
    """A process with a zygote."""

    process: subprocess.Popen[str]
    launcher: str
    lock: Path
    modules: Path

    def command(self, *arguments: str) -> list[str]:
        return [self.launcher, *arguments]

    def run(self, *arguments: str, order: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), input=f"{order}\n", capture_output=True, text=True, timeout=PATIENCE_SECONDS,
            env=self.environment(**environment), cwd=self.modules, check=False)

    @contextmanager
    def running(self) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
        """A launcher whose module has begun and waits for its order, and what the module said of itself."""
        with subprocess.Popen(
            self.command("-m", "asked_for"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=self.environment(), cwd=self.modules,
        ) as launched:
            try:
                assert launched.stdout is not None
                yield launched, json.loads(launched.stdout.readline())
            finally:
                launched.kill()

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.modules), **more}


@contextmanager
def parent_of_a_zygote(folder: Path) -> Iterator[Parent]:
    (folder / "asked_for.py").write_text(_MODULE)
    lock = folder / "lock"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**inherited, "TMPDIR": str(folder)},
    ) as process:
        try:
            assert process.stdout is not None
            yield Parent(process, process.stdout.readline().strip(), lock, folder)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    with parent_of_a_zygote(tmp_path_factory.mktemp("zygote")) as made:
        yield made


def reported(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    said: dict[str, object] = json.loads(done.stdout.splitlines()[0])
    return said


def ended(pid: object) -> Callable[[], bool]:
    """Whether a process is gone, or dead and not yet buried."""

    def look() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            return True

    return look


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_a_module_gets_its_arguments_environment_and_folder(parent: Parent) -> None:
    done = parent.run("-m", "asked_for", "one", "two words", "", GREETING="hællo")
    said = reported(done)
    assert said["arguments"] == ["one", "two words", ""]
    assert said["name"] == "__main__"
    assert said["folder"] == str(parent.modules)
    given = said["environment"]
    assert isinstance(given, dict)
    assert given["GREETING"] == "hællo"
    # Nothing of the parent's environment, which has a TMPDIR.
    assert "TMPDIR" not in given


def test_the_standard_streams_are_the_launchers(parent: Parent) -> None:
    done = parent.run("-m", "asked_for", order="0")
    assert done.stdout.splitlines()[1] == "got '0'"
    assert done.stderr == "an error line\n"


def test_a_module_is_forked_from_the_zygote_and_not_started(parent: Parent) -> None:
    said = reported(parent.run("-m", "asked_for"))
    zygote = said["parent"]
    assert reported(parent.run("-m", "asked_for"))["parent"] == zygote
    assert said["imported"] == ["pyspark.worker", "penstock.spark.daemon"]


def test_the_zygote_is_no_fork_of_its_parent(parent: Parent) -> None:
    zygote = reported(parent.run("-m", "asked_for"))["parent"]
    assert Path(f"/proc/{zygote}/stat").read_text().rsplit(")", 1)[1].split()[1] == str(parent.process.pid)
    command = Path(f"/proc/{zygote}/cmdline").read_bytes().split(b"\0")
    assert command[1:3] == [b"-m", b"penstock.spark.zygote"]


@pytest.mark.parametrize(("order", "code"), [("0", 0), ("7", 7), ("255", 255), ("say no", 1), ("die", 128 + 9)])
def test_the_launcher_ends_with_the_modules_exit_code(parent: Parent, order: str, code: int) -> None:
    assert parent.run("-m", "asked_for", order=order).returncode == code


def test_an_exception_is_told_on_the_standard_error(parent: Parent) -> None:
    done = parent.run("-m", "asked_for", order="raise")
    assert done.returncode == 1
    assert "ValueError: by order" in done.stderr


def test_a_module_that_does_not_exist_is_an_error_and_not_the_end_of_the_zygote(parent: Parent) -> None:
    done = parent.run("-m", "never_written")
    assert done.returncode == 1
    assert "never_written" in done.stderr
    assert parent.run("-m", "asked_for", order="3").returncode == 3


def test_unbuffered_output_is_there_even_if_the_process_is_killed(parent: Parent) -> None:
    done = parent.run("-m", "asked_for", order="die", PYTHONUNBUFFERED="YES")
    assert done.stdout.endswith("last words")
    assert done.stderr.endswith("last error\n")


def test_anything_but_a_module_is_run_by_the_real_python(parent: Parent) -> None:
    program = "import os, sys; print(sys.argv[1], os.getppid()); sys.exit(4)"
    done = parent.run("-c", program, "given")
    assert done.stdout.split() == ["given", str(os.getpid())]
    assert done.returncode == 4


def test_a_child_holds_nothing_open_but_its_streams(parent: Parent) -> None:
    with parent.running():
        descriptors = reported(parent.run("-m", "asked_for"))["open"]
    # The fourth is the listing itself.
    assert isinstance(descriptors, list)
    assert set(descriptors) <= {"0", "1", "2", "3"}


def test_several_modules_run_at_once(parent: Parent) -> None:
    with parent.running() as (first, _), parent.running() as (second, _):
        for launched, order in ((second, "5"), (first, "6")):
            launched.communicate(f"{order}\n", timeout=PATIENCE_SECONDS)
            assert launched.returncode == int(order)


@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGKILL])
def test_killing_the_launcher_ends_its_child_and_no_other(parent: Parent, blow: signal.Signals) -> None:
    with parent.running() as (launched, said), parent.running() as (other, _):
        launched.send_signal(blow)
        wait_until(ended(said["pid"]))
        other.communicate("9\n", timeout=PATIENCE_SECONDS)
        assert other.returncode == 9


def test_the_zygote_survives_a_launcher_and_a_child_that_end_at_the_same_moment(parent: Parent) -> None:
    with parent.running() as (launched, said):
        # While it waits for what somebody wants, it hears of nothing else: then of both ends at once.
        with socket.socket(socket.AF_UNIX) as undecided:
            before = descriptors_of(said["parent"])
            undecided.connect(str(Path(parent.launcher).with_name("socket")))
            wait_until(lambda: descriptors_of(said["parent"]) > before)
            os.kill(said["pid"], signal.SIGKILL)
            wait_until(ended(said["pid"]))
            launched.kill()
            launched.wait()
        assert reported(parent.run("-m", "asked_for"))["parent"] == said["parent"]


def test_a_lock_of_the_parents_is_free_as_soon_as_the_parent_lets_go(tmp_path: Path) -> None:
    with parent_of_a_zygote(tmp_path) as parent:
        assert parent.run("-m", "asked_for").returncode == 0
        with parent.lock.open("w") as file:
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert parent.process.stdin is not None
            assert parent.process.stdout is not None
            parent.process.stdin.write("\n")
            parent.process.stdin.flush()
            assert parent.process.stdout.readline() == "let go\n"
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert parent.run("-m", "asked_for").returncode == 0


def test_the_zygote_and_its_children_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    with parent_of_a_zygote(tmp_path) as parent, parent.running() as (_, said):
        parent.process.kill()
        wait_until(ended(said["parent"]))
        wait_until(ended(said["pid"]))


def test_texts_hash_as_in_sparks_own_workers(parent: Parent) -> None:
    program = "print(hash('text'))"
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0"}
    wanted = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True)
    assert reported(parent.run("-m", "asked_for"))["hash"] == int(wanted.stdout)


def test_without_its_zygote_the_launcher_is_the_real_python(tmp_path: Path) -> None:
    with parent_of_a_zygote(tmp_path) as parent:
        zygote = reported(parent.run("-m", "asked_for"))["parent"]
        assert isinstance(zygote, int)
        os.kill(zygote, signal.SIGKILL)
        wait_until(ended(zygote))
        done = parent.run("-m", "asked_for", "still", order="6")
        assert reported(done)["arguments"] == ["still"]
        assert reported(done)["parent"] == os.getpid()
        assert done.returncode == 6


def test_the_launcher_is_removed_when_its_parent_ends_in_peace(tmp_path: Path) -> None:
    with parent_of_a_zygote(tmp_path) as parent:
        assert Path(parent.launcher).exists()
        parent.process.communicate("\n", timeout=PATIENCE_SECONDS)
        assert not Path(parent.launcher).parent.exists()


def test_only_what_nobody_uses_any_more_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    long_ago = time.time() - 2 * 24 * 3600

    def left(name: str, when: float) -> Path:
        folder = tmp_path / f"penstock-zygote-{name}"
        folder.mkdir()
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "socket"))
        os.utime(folder / "socket", (when, when))
        return folder

    dead, fresh, alive = left("dead", long_ago), left("fresh", time.time()), tmp_path / "penstock-zygote-alive"
    alive.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(alive / "socket"))
        os.utime(alive / "socket", (long_ago, long_ago))
        clear_leftovers()
    assert not dead.exists()
    assert fresh.exists()
    assert alive.exists()
