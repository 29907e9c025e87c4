"""A console on this machine: a master with its page, a supervisor, or both in one process."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from penstock import __version__
from penstock.console.api import Access, create_app, is_loopback
from penstock.console.client import trusting
from penstock.console.fetching import fetch_from
from penstock.console.home import ConsoleHome
from penstock.console.keeping import Keeping
from penstock.console.master import Candidate, Master
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, NodeTaken
from penstock.console.service import Service
from penstock.console.tokens import Tokens
from penstock.console.versions import Part, sign_in
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.dashboard.page import add_page
from penstock.errors import ConsoleError, CoordinationError

_ONLY_HERE = ", for this machine only: supervisors and masters elsewhere get no files from it; give --host"


@dataclass(frozen=True)
class ConsoleSettings:
    """What is started, and where."""

    home: ConsoleHome
    coordinator: str
    host: str = "127.0.0.1"
    port: int = 8470
    node: str = ""
    """The name of this machine's supervisor."""
    master: bool = True
    supervisor: bool = True
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""
    """With which masters are asked for bundles, by a supervisor and by other masters."""
    authority: Path | None = None
    """Who vouches for the masters, where this machine does not know it."""

    @property
    def is_cut_off(self) -> bool:
        """Whether others may meet it at its coordinator who cannot reach it."""
        return self.coordinator.startswith("zookeeper:") and is_loopback(self.host)

    @property
    def url(self) -> str:
        """Where others find it: an address that means every address is none for them."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


def serve(settings: ConsoleSettings, say: Callable[[str], None]) -> None:
    """Until Ctrl-C. Topologies go on without it; raises ConsoleError or CoordinationError when it cannot be started.

    Raises CoordinationError, too, where others have taken its place while it was frozen or cut off.
    """
    turned_away: list[CoordinationError] = []
    # No signal: a shell that started this one in the background has it ignore Ctrl-C.
    over = threading.Event()

    def end(error: CoordinationError) -> None:
        turned_away.append(error)
        over.set()

    _serve(settings, say, end, over)
    if turned_away:
        say("this one was silent for too long, and ends; topologies go on")
        raise turned_away[0]


def _serve(
    settings: ConsoleSettings, say: Callable[[str], None], end: Callable[[CoordinationError], None],
    over: threading.Event,
) -> None:  # fmt: skip
    # Before anything is begun: whether it can be used.
    trusting(settings.authority)
    with ExitStack() as resources:
        settings.home.make_private(settings.coordinator)
        coordinator = open_coordinator(settings.coordinator)
        resources.callback(coordinator.close)
        listener = _listener(settings) if settings.master else None
        if listener is not None:
            resources.callback(listener.close)

        # Before anything is begun.
        access = _access(settings, coordinator) if settings.master else None
        sign_in(coordinator, Part(socket.gethostname(), os.getpid(), __version__), end)
        if settings.supervisor:
            _start_supervisor(settings, coordinator, say, resources, end)
        if listener is None or access is None:
            over.wait()
            return
        master = Master(coordinator, _candidate(settings), say)
        master.start()
        resources.callback(master.stop)
        _start_keeping(settings, coordinator, master, say, resources)
        app = create_app(Service(master, settings.home, coordinator), access)
        add_page(app)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, server_header=False,
                                ssl_certfile=settings.certificate, ssl_keyfile=settings.key)  # fmt: skip
        say(f"the console is at {settings.url}{_ONLY_HERE if settings.is_cut_off else ''}")
        _run_until(over, uvicorn.Server(config), listener)


def _candidate(settings: ConsoleSettings) -> Candidate:
    """This start of a master: two containers may have one host name, and listen on the same port."""
    host, process = socket.gethostname(), os.getpid()
    return Candidate(f"{host}-{settings.port}-{process}", settings.url, __version__, process, host)


def _run_until(over: threading.Event, server: uvicorn.Server, listener: socket.socket) -> None:
    def ask_to_exit() -> None:
        over.wait()
        server.should_exit = True

    threading.Thread(target=ask_to_exit, name="penstock-over", daemon=True).start()
    server.run([listener])


def _start_keeping(settings: ConsoleSettings, coordinator: Coordinator, master: Master, say: Callable[[str], None],
                   resources: ExitStack) -> None:  # fmt: skip
    fetch = fetch_from(settings.home, master.others, settings.token, settings.authority)
    keeping = Keeping(master.me.name, settings.home, coordinator, fetch, say)
    keeping.start()
    resources.callback(keeping.stop)


def _start_supervisor(
    settings: ConsoleSettings, coordinator: Coordinator, say: Callable[[str], None], resources: ExitStack,
    turned_away: Callable[[NodeTaken], None],
) -> None:  # fmt: skip
    node = Node(settings.node or socket.gethostname(), socket.gethostname(), os.getpid(), __version__)
    onlooker = Master(coordinator, Candidate("", "", __version__, 0))
    fetch = fetch_from(settings.home, onlooker.candidates, settings.token, settings.authority)
    shared = settings.coordinator.startswith("zookeeper:")
    epoch_logs = f"{settings.coordinator.rstrip('/')}/topologies" if shared else None
    # Beside the coordinator: nodes that share it share the logs, whatever homes they have.
    spread_logs = None if shared else Path(settings.coordinator.partition(":")[2]).absolute().parent / "spread"
    supervisor = NodeSupervisor(node, settings.home, coordinator, fetch, say, epoch_logs, spread_logs)
    supervisor.join(turned_away)
    thread = threading.Thread(target=supervisor.run, name="penstock-node", daemon=True)
    thread.start()
    resources.callback(thread.join)
    resources.callback(supervisor.stop)


def _listener(settings: ConsoleSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConsoleError(
            f"{settings.host}:{settings.port} cannot be used: {error.strerror}; is a console running already? Give "
            "another --port, or stop that one"
        ) from error
    return listener


def _access(settings: ConsoleSettings, coordinator: Coordinator) -> Access:
    tokens = Tokens(coordinator)
    local = is_loopback(settings.host)
    if not local and not any(not token.expired for token in tokens.all()):
        raise ConsoleError(
            f"{settings.host} can be reached from other machines, so tokens are needed, and there are none: make one "
            "with `penstock token create --role operator`"
        )
    hosts = frozenset({"localhost", "127.0.0.1", "[::1]", settings.host}) if local else frozenset()
    return Access(tokens, local, hosts)
