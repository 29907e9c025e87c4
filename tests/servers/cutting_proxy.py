"""A network that fails at the worst moment: a proxy on loopback that cuts a connection on a chosen word."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class CuttingProxy:
    """Passes bytes to a server and back. Once armed, it lets the word through, waits for the server's answer, keeps
    that answer to itself, and hangs up: the client cannot know whether the server did what it was told."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._word: bytes | None = None
        self._open: list[socket.socket] = []
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, word: bytes) -> None:
        """Cut the next connection that says `word`."""
        self._word = word

    def close(self) -> None:
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._open += [client, server]
                cutting = threading.Event()
                threading.Thread(target=self._pass_on, args=(client, server, cutting), daemon=True).start()
                threading.Thread(target=self._pass_back, args=(server, client, cutting), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket, cutting: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self._word is not None and self._word in data:
                    self._word = None
                    cutting.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _pass_back(self, server: socket.socket, client: socket.socket, cutting: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if cutting.is_set():
                    self.cuts += 1
                    break
                client.sendall(data)
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def cutting_proxy(server_port: int) -> Iterator[CuttingProxy]:
    """A proxy before the server on that port."""
    proxy = CuttingProxy(server_port)
    try:
        yield proxy
    finally:
        proxy.close()
