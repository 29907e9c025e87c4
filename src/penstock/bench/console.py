"""What a master costs that watches many topologies, how old its page is, and how soon another takes over.

Nodes are made up: one process tells of all topologies, as their supervisors would.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.console.client import Client
from penstock.console.desired import Desired, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.nodes import Node, Nodes
from penstock.coordination.opening import open_coordinator
from penstock.epochs.moments import PROCESSES, TICKS_PER_SECOND
from penstock.errors import ConsoleError, DeliveryError

_NODE = "made-up"
_TELL_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class ConsoleCost:
    """What was measured."""

    topologies: int
    operators: int
    core_share: float
    """How much of a core the leading master used."""
    megabytes: float
    """Its memory at the end."""
    behind: float
    """Seconds: how old the oldest of what its API told was, at worst."""
    takeover: float
    """Seconds from the death of the master until the other led."""


def measure_console(
    topologies: int, operators: int, seconds: float, folder: Path, tell: Callable[[str], None]
) -> ConsoleCost:
    """Two masters, one of which is killed at the end; raises DeliveryError when they do not come up."""
    home = ConsoleHome(folder)
    with ExitStack() as resources:
        coordinator = open_coordinator(home.coordinator)
        resources.callback(coordinator.close)
        desired, nodes = Desired(coordinator), Nodes(coordinator)
        names = [f"topology-{number:04d}" for number in range(topologies)]
        for name in names:
            desired.add(Wanted(name, "0" * 64, "topology.yaml", replicas=2, nodes={"1": _NODE, "2": _NODE}))
        nodes.join(Node(_NODE, socket.gethostname(), 0, "0"))
        over = threading.Event()
        teller = threading.Thread(target=_tell_until, args=(over, home.coordinator, names, operators), daemon=True)
        teller.start()
        resources.callback(teller.join)
        resources.callback(over.set)
        tell("two masters start")
        first, second = (_master(home, resources) for _ in range(2))
        leader, standby = (first, second) if _leads(first[1]) else (second, first)
        tell(f"{topologies} topologies for {seconds:.0f} s")
        began, used = time.monotonic(), _processor_seconds(leader[0].pid)
        behind = 0.0
        while time.monotonic() - began < seconds:
            time.sleep(1.0)
            told: list[dict[str, Any]] = leader[1].get("/api/topologies")
            now = time.time()
            behind = max([behind, *(now - one["at"] for one in told if one["at"] is not None)])
        share = (_processor_seconds(leader[0].pid) - used) / (time.monotonic() - began)
        megabytes = _megabytes(leader[0].pid)
        tell("the master is killed")
        leader[0].kill()
        leader[0].wait()
        killed = time.monotonic()
        _await(lambda: _leads(standby[1]), "nobody took over")
        return ConsoleCost(topologies, operators, share, megabytes, behind, time.monotonic() - killed)


def _tell_until(over: threading.Event, address: str, names: Sequence[str], operators: int) -> None:
    coordinator = open_coordinator(address)
    nodes = Nodes(coordinator)
    epoch = 0
    while not over.is_set():
        began, epoch = time.monotonic(), epoch + 1
        for name in names:
            nodes.tell(_NODE, name, _seen(epoch, operators))
        over.wait(max(_TELL_SECONDS - (time.monotonic() - began), 0.01))
    coordinator.close()


def _seen(epoch: int, operators: int) -> dict[str, Any]:
    tuples = {f"operator-{number}": epoch * 1000 for number in range(operators)}
    replicas = [
        {"name": name, "cell": "local", "phase": "safe", "epoch": epoch, "behind": 0, "first": epoch // 2, "why": "",
         "process": 1, "host": "made-up"}
        for name in ("1", "2")
    ]  # fmt: skip
    progress = {"event": "progress", "epoch": epoch, "lag": 0, "seconds": 1.0, "epoch_ms": 50.0, "tuples": tuples,
                "delivered": {"out": epoch * 100}, "malformed": {}, "failed": {}, "retried": 0, "lost": 0, "late": 0,
                "waiting": None}  # fmt: skip
    return {"how": "running", "why": "", "epoch": epoch, "at": time.time(), "digest": "0" * 64, "replicas": replicas,
            "safety": "2/2 safe", "progress": progress, "busy": False}  # fmt: skip


def _master(home: ConsoleHome, resources: ExitStack) -> tuple[subprocess.Popen[bytes], Client]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "penstock", "master", "--port", str(port), "--home", str(home.path)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    resources.callback(_end, process)
    client = Client(f"http://127.0.0.1:{port}")
    _await(lambda: _answers(client), "a master does not come up")
    return process, client


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait()


def _answers(client: Client) -> bool:
    with suppress(ConsoleError):
        return client.get("/api/console")["leader"] is not None
    return False


def _leads(client: Client) -> bool:
    with suppress(ConsoleError):
        return bool(client.get("/api/console")["leading"])
    return False


def _await(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise DeliveryError(f"{otherwise} within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.05)


def _processor_seconds(process: int) -> float:
    fields = (PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def _megabytes(process: int) -> float:
    for line in (PROCESSES / str(process) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0
