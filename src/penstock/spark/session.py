"""Start Spark the way Penstock needs it: fast on one machine, quiet on the terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.spark.class_archive import archive_options
from penstock.spark.epoch_source import EpochDataSource
from penstock.spark.java import Java, check_java
from penstock.spark.plain_files import FILE_SYSTEM, plain_files_jar
from penstock.spark.table_source import TableDataSource
from penstock.spark.zygote import zygote_launcher

_STREAMING = "spark.sql.streaming."

CHANGELOGS = f"{_STREAMING}stateStore.rocksdb.changelogCheckpointing.enabled"
"""Whether an epoch writes down what it changed in the state, or the whole of it again."""

ALWAYS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A topology is one query of many stateful operators; Penstock's validation knows which may follow which.
    f"{_STREAMING}statefulOperator.checkCorrectness.enabled": "false",
    # Sorting and numbering within an epoch is sound, and Spark's check does not know of epochs.
    f"{_STREAMING}unsupportedOperationCheck": "false",
    f"{_STREAMING}stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    CHANGELOGS: "true",
    # Memory of an operator's instance: two of these, 8 MB of cache, and 10 bits a key for filters. Spark's one budget
    # for all (boundedMemoryUsage) has filters in a cache of 64 parts: one of megabytes finds no place, and is read anew
    # for every key.
    f"{_STREAMING}stateStore.rocksdb.writeBufferSizeMB": "16",
    f"{_STREAMING}stateStore.rocksdb.maxWriteBufferNumber": "2",
    # Counting the keys in state costs a look-up for every write.
    f"{_STREAMING}stateStore.rocksdb.trackTotalNumberOfRows": "false",
    f"{_STREAMING}minBatchesToRetain": "10",
    # It turns a global count read by two branches into a subquery, which streaming cannot plan.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.execution.planmerging.MergeSubplans",
    # Ticks are epochs of our own; Spark need not run batches without data.
    f"{_STREAMING}noDataMicroBatches.enabled": "false",
    # A fan-out compares plans to reuse an exchange; wide plans need deep stacks when a query stops.
    # Upper and lower case are the same in every country.
    "spark.driver.extraJavaOptions": "-Xss4m -Duser.language=en -Duser.country=US",
    # The first `upper` or `lower` of a run would fill a table of all of Unicode, and all tasks wait two seconds for it.
    "spark.sql.icu.caseMappings.enabled": "false",
    # A stage of Python costs 14 ms with Unix sockets, 57 ms without.
    "spark.python.unix.domain.socket.enabled": "true",
    # Forks workers that have imported everything already.
    "spark.python.daemon.module": "penstock.spark.daemon",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # With one query per session, cached plans of old epochs are only in the way.
    f"{_STREAMING}numRecentProgressUpdates": "20",
}

_LOCAL_FILES = "spark.hadoop.fs.file.impl"
_CLASS_PATH = "spark.driver.extraClassPath"

ON_LOCAL_DISK: Mapping[str, str] = {
    # Spark's default forks `chmod` for each file of the offset and commit logs: 30 ms instead of 7.
    f"{_STREAMING}checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Hive's local file system, which would be taken otherwise, renames nothing over a file that exists, silently:
    # an epoch that is run again would leave the state that its first run wrote.
    _LOCAL_FILES: "org.apache.hadoop.fs.LocalFileSystem",
}
"""Only right for a checkpoint on a local disk: renaming there is atomic."""

NEWEST_WITH_VFORK = 25
"""Later versions of Java warn about it."""

_LOG_CONFIGURATION = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
logger.state.name = org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer
logger.state.level = error
"""
"""The server of keyed state warns of every key that it does not know yet."""


@dataclass(frozen=True)
class SessionSettings:
    """How to start Spark for one topology."""

    name: str
    master: str
    logs: Path
    """Spark's own log goes here, and what custom code prints."""
    state_partitions: int
    memory: str = "1g"
    extra: Mapping[str, str] = field(default_factory=dict)
    """`spark.…` settings of the user's; they win."""
    lock: int | None = None
    """A file descriptor that the JVM keeps open as long as it lives."""
    makes_archive: bool = True
    """Whether its JVM writes an archive of classes at its end, where there is none: see `class_archive`."""


def default_master() -> str:
    """All cores of this machine."""
    return f"local[{os.cpu_count() or 2}]"


def cores_of(master: str) -> int:
    """How many tasks run at once, as far as the master's address tells."""
    if master.startswith("local[") and master.endswith("]"):
        number = master[6:-1].split(",")[0]
        return (os.cpu_count() or 2) if number == "*" else int(number)
    return 1 if master == "local" else (os.cpu_count() or 2)


def prepare_workers(master: str) -> None:
    """Choose the Python that Spark starts; called early, it gets ready while other things are done."""
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = zygote_launcher() if _is_local(master) else sys.executable


def start_session(settings: SessionSettings) -> SparkSession:
    """A session for one topology; raises MachineError when this machine cannot run Spark."""
    java = check_java()
    prepare_workers(settings.master)
    os.environ.setdefault("JAVA_HOME", str(java.path.resolve().parents[1]))
    settings.logs.mkdir(parents=True, exist_ok=True)
    conf = _configuration(settings, java)
    _redirect_gateway(conf, settings.logs / "workers.log", settings.lock)
    with _handler_kept(signal.SIGINT):
        # Spark puts a handler of its own for Ctrl-C, which calls the JVM from the middle of another call.
        session = SparkSession.builder.config(conf=conf).getOrCreate()
    _quieten_accumulators(session)
    session.dataSource.register(EpochDataSource)
    session.dataSource.register(TableDataSource)
    if _is_local(settings.master):
        _leave_out_checksum_files(session)
    return session


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _quieten_accumulators(session: SparkSession) -> None:
    """A JVM that dies is told once, by us, and not in a stack trace of the server for its accumulators."""
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda request, client: logging.info("the JVM has left the accumulators", exc_info=True)


def _leave_out_checksum_files(session: SparkSession) -> None:
    """Spare Hadoop's `.crc` file beside every checkpoint file; Spark's default file manager has none either."""
    jvm: Any = session._jvm
    context: Any = session.sparkContext._jsc
    hadoop = jvm.org.apache.hadoop.fs.FileSystem
    hadoop.getLocal(context.hadoopConfiguration()).setWriteChecksum(False)


def _configuration(settings: SessionSettings, java: Java) -> SparkConf:
    log_configuration = settings.logs / "log4j2.properties"
    log_configuration.write_text(_LOG_CONFIGURATION.format(level="warn", file=settings.logs / "spark.log"))
    values = dict(ALWAYS)
    options = [values["spark.driver.extraJavaOptions"], f"-Dlog4j2.configurationFile={log_configuration}"]
    if _is_local(settings.master):
        values |= ON_LOCAL_DISK
        own = plain_files_jar()
        if own is not None:
            values |= {_CLASS_PATH: str(own), _LOCAL_FILES: FILE_SYSTEM}
        options += archive_options(java, [own] if own else [], settings.makes_archive)
    if java.version <= NEWEST_WITH_VFORK:
        # A plain vfork starts other processes without Java's helper process.
        options.append("-Djdk.lang.Process.launchMechanism=VFORK")
    values |= {
        "spark.driver.memory": settings.memory,
        "spark.sql.shuffle.partitions": str(settings.state_partitions),
        "spark.driver.extraJavaOptions": " ".join(options),
    }
    paths = [each[_CLASS_PATH] for each in (values, settings.extra) if _CLASS_PATH in each]
    values |= settings.extra
    if paths:
        values[_CLASS_PATH] = os.pathsep.join(paths)
    conf = SparkConf().setMaster(settings.master).setAppName(f"penstock {settings.name}")
    return conf.setAll(list(values.items()))


@contextlib.contextmanager
def _handler_kept(number: signal.Signals) -> Iterator[None]:
    """Put the signal's handler back at the end; only the main thread has any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(number)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def _ignoring_sigterm() -> Iterator[None]:
    """What is started inside ignores it for good."""
    with _handler_kept(signal.SIGTERM):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        yield


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Put a Ctrl-C off until the end: a JVM that nobody has connected to yet would be left behind, and hang."""
    asked = threading.Event()
    with _handler_kept(signal.SIGINT):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda number, frame: asked.set())
        yield
    if asked.is_set():
        raise KeyboardInterrupt


def _redirect_gateway(conf: SparkConf, log: Path, lock: int | None) -> None:
    """Launch the JVM with its output in a file: what workers print must not disturb ours.

    It ignores SIGTERM: one that is sent to our whole group, as `timeout` does it, is for us to act on. The JVM ends
    when we do.
    """
    if SparkContext._gateway is not None:
        return
    kept = () if lock is None else (lock,)
    with log.open("ab") as file, _ignoring_sigterm(), _interrupted_later():
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            conf, popen_kwargs={"stdout": file, "stderr": file, "pass_fds": kept}
        )
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
