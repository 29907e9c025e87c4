"""Find a Java that Spark can run on, and say plainly what to do when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import MachineError

OLDEST = 17
_INSTALL = "install a Java runtime of version 17 or later (on Debian: apt-get install default-jre-headless)"


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark can run on."""

    path: Path
    version: int
    build: str = ""
    """What it says of itself."""


def check_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The `java` that Spark will use; raises MachineError when it is missing or too old."""
    java = _find_java(environ)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(f"{java} cannot be run ({error}): {_INSTALL}") from error
    version = java_version(said)
    if version is None:
        raise MachineError(f"{java} does not say its version: {_INSTALL}")
    if version < OLDEST:
        raise MachineError(f"{java} is Java {version}, and Spark 4.3 needs {OLDEST} or later: {_INSTALL}, "
                           "or point JAVA_HOME at one")
    return Java(java, version, _of_itself(said))


def java_version(said: str) -> int | None:
    """The major version in the output of `java -version`: 8 for 1.8.0, 17 for 17.0.15."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major


def _of_itself(said: str) -> str:
    """Without what options from the environment make of it: which compilers it uses, and the lines on the options."""
    lines = (line for line in said.splitlines() if "Picked up" not in line)
    return "\n".join(re.sub(r", \w+ mode\b[^)]*", "", line) for line in lines)


def _find_java(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise MachineError(f"JAVA_HOME is {home}, but there is no bin/java in it: correct JAVA_HOME or unset it")
        return java
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise MachineError(f"no Java was found: {_INSTALL}, or point JAVA_HOME at one")
    return Path(found)


def main() -> int:
    """`python -m penstock.spark.java`: 0 when there is a Java to run on."""
    try:
        check_java()
    except MachineError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
