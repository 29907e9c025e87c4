"""Masters for tests that have nothing in common but a coordinator: real HTTP, a home and a session of its own each."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trustme
import uvicorn

from penstock.console.api import Access, create_app
from penstock.console.bundle import digest_of, pack
from penstock.console.client import Client
from penstock.console.desired import Desired, Wanted
from penstock.console.fetching import fetch_from
from penstock.console.home import ConsoleHome
from penstock.console.keeping import Keeping
from penstock.console.master import Candidate, Master
from penstock.console.service import Service
from penstock.console.tokens import Tokens
from penstock.coordination.memory import MemoryCoordinator, MemoryStore

from ...waiting import wait_until


@dataclass(frozen=True)
class Certificate:
    """What `--certificate`, `--key` and `--authority` name."""

    chain: Path
    key: Path
    authority: Path

    @classmethod
    def made_in(cls, folder: Path, *names: str) -> Certificate:
        made = cls(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
        authority = trustme.CA()
        issued = authority.issue_cert(*names)
        issued.cert_chain_pems[0].write_to_path(made.chain)
        issued.private_key_pem.write_to_path(made.key)
        authority.cert_pem.write_to_path(made.authority)
        return made


@dataclass(frozen=True)
class OneMaster:
    master: Master
    home: ConsoleHome
    keeping: Keeping
    coordinator: MemoryCoordinator
    said: list[str] = field(default_factory=list)
    """Of what it could not copy."""

    @property
    def url(self) -> str:
        return self.master.me.url

    def client(self, token: str = "", authority: Path | None = None) -> Client:
        return Client(self.url, token, authority)

    def has(self, digest: str) -> bool:
        return self.home.bundle(digest).exists()

    def take(self, name: str, text: str = "topology: t\n") -> str:
        """Have a bundle that is wanted, as one that was submitted here; its digest."""
        packed, digest = made_bundle(self.home.path.parent / f"files-{name}", text)
        self.home.keep_bundle(digest, packed)
        Desired(self.coordinator).add(Wanted(name, digest, "topology.yaml"))
        return digest


def made_bundle(folder: Path, text: str) -> tuple[bytes, str]:
    folder.mkdir(exist_ok=True)
    (folder / "topology.yaml").write_text(text)
    return pack(folder), digest_of({"topology.yaml": text.encode()})


@contextmanager
def one_master(
    home: Path, store: MemoryStore, *, token: str = "", certificate: Certificate | None = None,
    open_to_all: bool = True, machine: str = "", at: str = "127.0.0.1",
) -> Iterator[OneMaster]:  # fmt: skip
    """`token` is what it asks the others with; `machine` is where it says that it is, and `at` the address it tells."""
    coordinator = MemoryCoordinator(store)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        url = f"{'https' if certificate else 'http'}://{at}:{port}"
        master = Master(coordinator, Candidate(home.name, url, "0", 1, machine or socket.gethostname()))
        said: list[str] = []
        own = ConsoleHome(home)
        fetch = fetch_from(own, master.others, token, certificate.authority if certificate else None)
        keeping = Keeping(home.name, own, coordinator, fetch, said.append)
        app = create_app(Service(master, own, coordinator), Access(Tokens(coordinator), open_to_all, frozenset()))
        server = uvicorn.Server(uvicorn.Config(
            app, log_level="error", timeout_graceful_shutdown=1,
            ssl_certfile=certificate.chain if certificate else None,
            ssl_keyfile=certificate.key if certificate else None))  # fmt: skip
        thread = threading.Thread(target=server.run, args=([listener],))
        master.start()
        thread.start()
        wait_until(lambda: server.started)
        keeping.start()
        try:
            yield OneMaster(master, own, keeping, coordinator, said)
        finally:
            keeping.stop()
            server.should_exit = True
            thread.join()
            master.stop()
            coordinator.close()
