"""What a master costs that watches many topologies, how old its page is, and how soon another takes over.

Most topologies are made up: one process tells of all of them, as their supervisors would. One really runs, on a node of
its own: how old the page is, and how soon commands take effect, is measured on that one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from penstock.bench.console_age import (
    NAME,
    Effect,
    Reached,
    measure_commands,
    shown_on_page,
    worse,
    worst_age,
    write_topology,
)
from penstock.console.bundle import pack
from penstock.console.client import Client
from penstock.console.desired import Desired, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.nodes import Node, Nodes
from penstock.console.topology_log import DELIVERIES
from penstock.coordination.opening import open_coordinator
from penstock.epochs.moments import PROCESSES, TICKS_PER_SECOND
from penstock.errors import ConsoleError, DeliveryError
from penstock.runtime.state_folder import StateFolder

_NODE = "made-up"
_REAL_NODE = "real"
_TELL_SECONDS = 0.5
_START_SECONDS = 120.0
"""A topology that runs starts Spark first."""
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
    """Seconds for which a page at worst still showed an epoch of the real topology although the next was done."""
    effect: float
    """Seconds that a command took to have its effect, at worst of all."""
    epochs: int
    """How many epochs were still as before a command, at most of all."""
    takeover: float
    """Seconds from the death of the master until the other led."""
    commands: Mapping[str, Effect]
    """The same by command."""


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
        masters = [_master(home, resources) for _ in range(2)]
        place = leading([client for _, client in masters])
        leader, standby = masters[place], masters[1 - place]
        tell("a topology starts")
        reached = _real_topology(home, leader[1], resources)
        tell(f"{topologies} topologies for {seconds:.0f} s")
        began, used = time.monotonic(), _processor_seconds(leader[0].pid)
        while time.monotonic() - began < seconds:
            time.sleep(1.0)
            leader[1].get("/api/topologies")
        share = (_processor_seconds(leader[0].pid) - used) / (time.monotonic() - began)
        megabytes = _megabytes(leader[0].pid)
        tell(f"a page is open for {seconds:.0f} s")
        shown = shown_on_page(leader[1].url, seconds)
        behind = worst_age(reached.moments, shown)
        tell("commands are given")
        effects = measure_commands(leader[1], reached)
        effect = reduce(worse, effects.values())
        tell("the master is killed")
        leader[0].kill()
        leader[0].wait()
        killed = time.monotonic()
        _await(lambda: _leads(standby[1]), "nobody took over")
        return ConsoleCost(topologies, operators, share, megabytes, behind, effect.seconds, effect.epochs,
                           time.monotonic() - killed, effects)  # fmt: skip


def _real_topology(home: ConsoleHome, client: Client, resources: ExitStack) -> Reached:
    """A node with a topology that runs; at the end neither does."""
    command = [sys.executable, "-m", "penstock", "supervisor", "--name", _REAL_NODE, "--home", str(home.path)]
    node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state = home.topology(NAME, _REAL_NODE).state
    resources.callback(_stop, state)
    resources.callback(_end, node)
    _await(lambda: any(each["name"] == _REAL_NODE for each in client.get("/api/console")["nodes"]), "no node came up")
    client.submit(pack(write_topology(home.path / "real-topology")), "topology.yaml", (), False, False)
    reached = Reached(state)
    reached.start()
    resources.callback(reached.stop)
    _await(lambda: len(reached.moments) > 1, "the topology did not begin", _START_SECONDS)
    return reached


def _stop(state: StateFolder) -> None:
    """End who runs a topology, which ends its replicas after their epoch."""
    process = state.running()
    if process is not None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        _await(lambda: state.running() is None, "the topology did not end")


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
    now = time.time()
    progress = {"epoch": epoch, "lag": 0, "seconds": 1.0, "epoch_ms": 50.0, "tuples": tuples, "ports": {},
                "delivered": {"out": epoch * 100}, "malformed": {}, "failed": {}, "retried": 0, "lost": 0, "late": 0,
                "waiting": None, "at": now, "moved": now}  # fmt: skip
    return {"how": "running", "why": "", "epoch": epoch, "at": now, "digest": "0" * 64, "replicas": replicas,
            "safety": "2/2 safe", "progress": progress, "busy": False,
            "delivered_by": (max(epoch - DELIVERIES, 0) + 1, "12" * (DELIVERIES // 2))}  # fmt: skip


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


def leading(clients: Sequence[Client], seconds: float = _PATIENCE_SECONDS) -> int:
    """The place of the one that leads; waited for, as while one takes over from another nothing is measured."""
    found: list[int] = []

    def is_one() -> bool:
        found[:] = [place for place, client in enumerate(clients) if _leads(client)]
        return len(found) == 1

    _await(is_one, "not one of the masters led", seconds)
    return found[0]


def _await(condition: Callable[[], bool], otherwise: str, seconds: float = _PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DeliveryError(f"{otherwise} within {seconds:g} s")
        time.sleep(0.05)


def _processor_seconds(process: int) -> float:
    fields = (PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def _megabytes(process: int) -> float:
    for line in (PROCESSES / str(process) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0
