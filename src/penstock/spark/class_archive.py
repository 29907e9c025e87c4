"""Spark's classes in an archive that the JVM maps into memory: a session starts in two thirds of the time.

Java calls it class-data sharing. The first run on a machine writes the archive when its JVM ends, later runs map
it. It belongs to one build of Java and to the very jar files it was made from: a JVM that finds one of them newer
goes on without the archive, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pyspark

from penstock.spark.java import Java

SWITCH = "PENSTOCK_CLASS_ARCHIVE"
"""`off` in this environment variable: neither write an archive nor use one."""

_MAGIC = (0xF00BABA8).to_bytes(4, "little")
"""How a complete archive begins: Java writes these bytes last."""


def archive_options(java: Java, more: Sequence[Path] = ()) -> list[str]:
    """What to tell the JVM: to use the archive, or to make it when there is none. `more` are jars beside Spark's."""
    if os.environ.get(SWITCH) == "off":
        return []
    path = archive_path(java, more)
    if is_complete(path):
        return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for former in path.parent.glob(f"{_place(java)}-*.jsa"):
            former.unlink(missing_ok=True)
    except OSError:
        return []
    return [f"-XX:ArchiveClassesAtExit={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def archive_path(java: Java, more: Sequence[Path] = ()) -> Path:
    """Where the archive for this Java, the jars of this Spark, and some more is kept."""
    files = [*more, *(_spark() / "jars").glob("*.jar")]
    jars = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in files)
    return cache_folder() / f"{_place(java)}-{_digest(java.build, jars)}.jsa"


def cache_folder() -> Path:
    """What Penstock keeps of this user's between runs, and can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _place(java: Java) -> str:
    """How the names of all archives begin that were made for what is installed in these two places."""
    return f"spark-{pyspark.__version__}-java-{java.version}-{_digest(java.path.resolve(), _spark())}"


def _spark() -> Path:
    return Path(pyspark.__file__).parent


def _digest(*parts: object) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:12]


def is_complete(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _MAGIC
    except OSError:
        return False
