"""The connection to ZooKeeper: patient for a moment, never for ever."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient, KazooRetry  # type: ignore[import-untyped]
from kazoo.exceptions import (  # type: ignore[import-untyped]
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError  # type: ignore[import-untyped]
from kazoo.protocol.states import KazooState  # type: ignore[import-untyped]

from penstock.errors import CoordinationError

CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 1.0
"""How long a request waits for a lost connection to come back."""

_CLIENT_LOG = logging.getLogger(f"{__name__}.client")
# Without a handler of its own every hiccup of the connection would be printed on the user's screen.
_CLIENT_LOG.addHandler(logging.NullHandler())


class ZookeeperConnection:
    """One session with ZooKeeper; after it is lost, the next one."""

    def __init__(
        self, hosts: str, ttl: float, connected: Callable[[], None], expired: Callable[[], None]
    ) -> None:
        """Connect, or raise CoordinationError. Both callbacks must be brief: the connection waits for them."""
        self._hosts = hosts
        self._answer_seconds = max(ttl, CONNECT_SECONDS)
        self._tell_connected = connected
        self._tell_expired = expired
        self._closing = False
        reconnecting = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.5)
        self._client = KazooClient(hosts, timeout=ttl, connection_retry=reconnecting, logger=_CLIENT_LOG)
        self._client.add_listener(self._state_changed)
        try:
            self._client.start(CONNECT_SECONDS)
        except KazooTimeoutError:
            raise CoordinationError(
                f"no ZooKeeper server answers at {hosts} within {CONNECT_SECONDS:g} s; "
                "start one there, or correct the address"
            ) from None
        self._live = self._client.start_async()

    def ask(self, request: Callable[[Any], Any], again: bool = True) -> Any:
        """The answer to a request, which is made with one of kazoo's asynchronous methods.

        A request that was cut off is made again if `again` says that this is harmless. Raises kazoo's own
        errors about nodes, and CoordinationError for everything else.
        """
        deadline = time.monotonic() + _RETRY_SECONDS
        while True:
            if not self._live.wait(max(0.0, deadline - time.monotonic())):
                raise CoordinationError(
                    f"the connection to ZooKeeper at {self._hosts} is lost; it is made anew as soon as a server answers"
                )
            try:
                return request(self._client).get(timeout=self._answer_seconds)
            except (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError):
                raise
            except (ConnectionLoss, SessionExpiredError) as error:
                if self._closing or not again or time.monotonic() >= deadline:
                    raise self._failed(error) from error
            except (KazooException, KazooTimeoutError) as error:
                raise self._failed(error) from error

    @property
    def session(self) -> tuple[int, bytes] | None:
        """The id and password of the session, if there is a connection."""
        identity: tuple[int, bytes] | None = self._client.client_id
        return identity

    def close(self) -> None:
        self._closing = True
        with suppress(KazooException, OSError):
            self._client.stop()
            self._client.close()

    def _failed(self, error: Exception) -> CoordinationError:
        said = str(error) or type(error).__name__
        return CoordinationError(
            f"ZooKeeper at {self._hosts} did not do what was asked: {said}; "
            "if this goes on, look into the server's log"
        )

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._tell_connected()
        elif state == KazooState.LOST and not self._closing:
            self._tell_expired()
