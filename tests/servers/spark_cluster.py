"""A real Spark standalone cluster on loopback, master and worker in one JVM; killed and restarted at will."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.chaos.life import Session

_HOST = "127.0.0.1"
_CORES = 1
_MEMORY_MB = 1024
_READY = "ready"


class SparkCluster:
    """The port stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        with socket.socket() as listener:
            listener.bind((_HOST, 0))
            self._port = int(listener.getsockname()[1])
        folder.mkdir(parents=True)

    @property
    def url(self) -> str:
        return f"spark://{_HOST}:{self._port}"

    def start(self) -> None:
        """Start it, and wait until its worker has been taken on."""
        with (self._folder / "cluster.log").open("a") as log:
            # Executors are children of the JVM: in one session, all of it can be killed at once.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(self._port), str(self._folder / "work")], text=True,
                env={**os.environ, "SPARK_LOCAL_HOSTNAME": _HOST}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, start_new_session=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said.strip() == _READY, (self._folder / "cluster.log").read_text()[-2000:]

    def kill(self) -> None:
        """kill -9 for master, worker and executors."""
        if self._process is not None:
            Session(self._process.pid).kill_all()
            self._process.communicate()
            self._process = None


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """A cluster that is running, and is gone afterwards whatever happens."""
    cluster = SparkCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def _serve(port: int, work: str) -> None:
    """Until nobody holds the other end of standard input."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway(SparkConf().set("spark.driver.memory", "384m"))
    java = gateway.jvm
    conf, deploy = java.org.apache.spark.SparkConf(False), java.org.apache.spark.deploy
    deploy.master.Master.startRpcEnvAndEndpoint(_HOST, port, 0, conf)
    masters = gateway.new_array(java.String, 1)
    masters[0] = f"spark://{_HOST}:{port}"
    deploy.worker.Worker.startRpcEnvAndEndpoint(
        _HOST, 0, 0, _CORES, _MEMORY_MB, masters, work, java.scala.Option.apply(1), conf,
        java.scala.Option.empty())  # fmt: skip
    print(_READY, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
