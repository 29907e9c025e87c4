"""Spark's classes in an archive that the JVM maps into memory: a session starts in two thirds of the time.

Java calls it class-data sharing. The first run on a machine writes the archive when its JVM ends, later runs map
it. Until then that JVM needs three times as long to start as with an archive, so replicas do not write it: see
`archive_maker`. It belongs to one build of Java and to the very jar files it was made from: a JVM that finds one of
them newer goes on without the archive, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyspark

from penstock.spark.java import Java

SWITCH = "PENSTOCK_CLASS_ARCHIVE"
"""`off` in this environment variable: neither write an archive nor use one."""

_DRAFT = ".draft"
_ABANDONED_SECONDS = 600.0
"""Nobody writes so long at one: it was killed."""

_MAGIC = (0xF00BABA8).to_bytes(4, "little")
"""How a complete archive begins: Java writes these bytes last."""


def archive_options(java: Java, more: Sequence[Path] = (), make: bool = True) -> list[str]:
    """What to tell the JVM: to use the archive, or with `make`, where there is none, to write one when it ends.

    `more` are jars beside Spark's.
    """
    if os.environ.get(SWITCH) == "off":
        return []
    path = archive_path(java, more)
    quiet = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    if is_there(path):
        return [f"-XX:SharedArchiveFile={path}", *quiet]
    if not make:
        return []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for former in path.parent.glob(f"{_place(java)}-*.jsa"):
            former.unlink(missing_ok=True)
    except OSError:
        return []
    # Several JVMs may be at it: each has a file of its own.
    return [f"-XX:ArchiveClassesAtExit={path}.{os.getpid()}{_DRAFT}", *quiet]


def is_there(path: Path) -> bool:
    """Whether there is a complete archive; one that a JVM has finished meanwhile is put in its place."""
    for draft in path.parent.glob(f"{path.name}.*{_DRAFT}"):
        with suppress(OSError):
            if is_complete(draft) and not is_complete(path):
                draft.replace(path)
            elif is_complete(path) or time.time() - draft.stat().st_mtime > _ABANDONED_SECONDS:
                draft.unlink()
    return is_complete(path)


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
