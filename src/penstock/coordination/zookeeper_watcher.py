"""A watch on a prefix in ZooKeeper, whose own watches are for single nodes and good for one change.

Creating and deleting entries changes the count of their folder's children; writers of values touch the
folder as well. So it is enough to watch folders, and the numbers in a folder's status say whether anything
happened in it, also between two watches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import NoNodeError  # type: ignore[import-untyped]

from penstock.coordination.znode_names import folder_of_node, may_hold
from penstock.coordination.zookeeper_connection import ZookeeperConnection
from penstock.errors import CoordinationError

_Status = dict[str, tuple[int, int, int]]


class PrefixWatch:
    """Calls `callback` from `look` if something has changed since the last look."""

    def __init__(self, connection: ZookeeperConnection, root: str, prefix: str, callback: Callable[[], None]) -> None:
        self._connection = connection
        self._root = root
        self._prefix = prefix
        self._callback = callback
        self._notify: Callable[[Any], None] = lambda _: None
        self._seen: _Status = {}
        self._lock = threading.Lock()

    def begin(self, notify: Callable[[], None]) -> None:
        """Note how things are; from now on `notify` is called when a `look` is needed."""

        def told(_: Any) -> None:
            notify()

        with self._lock:
            self._notify = told
            self._seen = self._status()

    def look(self) -> None:
        """Ask ZooKeeper to tell of the next change, and see what happened until now."""
        with self._lock:
            try:
                status = self._status()
            except CoordinationError:
                # Every new connection begins with a look.
                return
            changed = status != self._seen
            self._seen = status
        if changed:
            self._callback()

    def _status(self) -> _Status:
        # There is nothing to watch without a root.
        self._connection.ask(lambda client: client.ensure_path_async(self._root))
        nodes = self._connection.ask(lambda client: client.get_children_async(self._root, watch=self._notify))
        watched = [node for node in nodes if may_hold(folder_of_node(node), self._prefix)]
        return {node: status for node in watched if (status := self._folder_status(f"{self._root}/{node}"))}

    def _folder_status(self, path: str) -> tuple[int, int, int] | None:
        try:
            self._connection.ask(lambda client: client.get_children_async(path, watch=self._notify))
            # Read last: it shows what happened until both watches were set.
            _, status = self._connection.ask(lambda client: client.get_async(path, watch=self._notify))
        except NoNodeError:
            return None
        return status.czxid, status.cversion, status.version
