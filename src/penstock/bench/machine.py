"""What a benchmark was run on, as a page may say it: neither the name of the machine nor any path is in it."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from penstock import __version__
from penstock.errors import MachineError
from penstock.spark.java import check_java

_PROCESSORS = Path("/proc/cpuinfo")
_GIT_SECONDS = 10.0
_NOT_MEASURED = ":(top,exclude)docs"
"""Where benchmarks write their pages: what changes there changes no figure."""


@dataclass(frozen=True)
class Machine:
    """All that figures depend on, and that is nobody's secret."""

    cores: int
    processor: str
    memory_gb: float
    system: str
    """The kernel and its version, without what a distribution or a cloud adds to that."""
    python: str
    java: str
    spark: str
    penstock: str = __version__
    commit: str = ""
    """Of the checkout that Penstock runs from, with a `+` where files in it have changed; empty where there is none."""

    def __str__(self) -> str:
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        penstock = f"{self.penstock} ({self.commit})" if self.commit else self.penstock
        return (f"{cores} ({self.processor}), {self.memory_gb:.1f} GB of memory, {self.system}, Python {self.python}, "
                f"{self.java}, Spark {self.spark}, Penstock {penstock}")


def this_machine() -> Machine:
    return Machine(
        os.cpu_count() or 1, processor_in(_PROCESSORS.read_text() if _PROCESSORS.exists() else ""), _memory_gb(),
        kernel(platform.system(), platform.release()), platform.python_version(), _java(), _spark(),
        commit=commit_of(Path(__file__)),
    )  # fmt: skip


@cache
def commit_of(file: Path) -> str:
    """The short commit of the checkout that has this file, and `+` where anything but docs differs from it.

    Empty where the file is in no checkout, or only lies in somebody else's, as an installed package may. Found out once
    for a process: whoever changes the checkout while it runs does not change what it has loaded.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "--", file.name)
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", _NOT_MEASURED)
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def processor_in(listing: str) -> str:
    """The model in the text of `/proc/cpuinfo`; the kind of processor where it names none, as on ARM."""
    for line in listing.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.machine() or "unknown processor"


def kernel(name: str, release: str) -> str:
    """`Linux 6.1` of `Linux` and `6.1.0-18-cloud-amd64`."""
    number = ".".join(release.split("-")[0].split(".")[:2])
    return f"{name} {number}".strip()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _java() -> str:
    try:
        return f"Java {check_java().version}"
    except MachineError:
        return "no Java"


def _spark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "not installed"
