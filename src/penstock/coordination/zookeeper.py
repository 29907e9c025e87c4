"""The coordinator of a cluster: ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from kazoo.exceptions import (  # type: ignore[import-untyped]
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)

from penstock.coordination.base import SESSION_TTL_SECONDS, Watch, check_entry
from penstock.coordination.watches import Watches
from penstock.coordination.znode_names import (
    folder_node,
    folder_of_node,
    leaf_node,
    leaf_of_node,
    may_hold,
    split_key,
)
from penstock.coordination.zookeeper_connection import ZookeeperConnection
from penstock.coordination.zookeeper_watcher import PrefixWatch


class ZookeeperCoordinator:
    """Entries as nodes below one root; see `znode_names`, and `base.Coordinator` for the contract.

    Behind an ensemble a `get` or `list` may lag a moment behind what others wrote; writes never do.
    """

    def __init__(self, hosts: str, root: str, ttl: float = SESSION_TTL_SECONDS) -> None:
        """Connect to one of `hosts`, as in `one:2181,two:2181`; `root` begins with a slash."""
        self._root = root
        self._watches = Watches()
        self._connection = ZookeeperConnection(hosts, ttl, self._look_anew, self._watches.expired)

    def create_if_absent(self, key: str, value: str) -> str:
        return self._create(key, value, ephemeral=False)

    def create_ephemeral(self, key: str, value: str) -> str:
        return self._create(key, value, ephemeral=True)

    def _create(self, key: str, value: str, ephemeral: bool) -> str:
        check_entry(key, value)
        path = self._path(key)
        while True:
            try:
                self._connection.ask(
                    lambda client: client.create_async(path, value.encode(), ephemeral=ephemeral, makepath=True)
                )
                return value
            except NodeExistsError:
                held = self.get(key)
                if held is not None:
                    return held
            except NoNodeError:
                # The folder was empty and removed by somebody just now.
                continue

    def put(self, key: str, value: str) -> None:
        check_entry(key, value)
        while True:
            try:
                self._set(key, value, -1, again=True)
                return
            except NoNodeError:
                with suppress(NodeExistsError, NoNodeError):
                    self._connection.ask(
                        lambda client: client.create_async(self._path(key), value.encode(), makepath=True)
                    )
                    return

    def replace(self, key: str, expected: str, value: str) -> bool:
        check_entry(key, value)
        while True:
            found = self._read(key)
            if found is None or found[0] != expected:
                return False
            try:
                # Not again after a cut: if it was done, the second try would find another's value: ours.
                self._set(key, value, found[1], again=False)
                return True
            except (BadVersionError, NoNodeError):
                continue

    def get(self, key: str) -> str | None:
        found = self._read(key)
        return None if found is None else found[0]

    def list(self, prefix: str) -> list[str]:
        folders = (folder_of_node(node) for node in self._children(self._root))
        return sorted(
            key
            for folder in folders
            if may_hold(folder, prefix)
            for node in self._children(self._folder_path(folder))
            if (key := folder + leaf_of_node(node)).startswith(prefix)
        )

    def entries(self, prefix: str) -> dict[str, str]:
        found = ((key, self.get(key)) for key in self.list(prefix))
        return {key: value for key, value in found if value is not None}

    def delete(self, key: str) -> None:
        with suppress(NoNodeError):
            self._connection.ask(lambda client: client.delete_async(self._path(key)))
        folder, _ = split_key(key)
        if folder.count("/") > 1:
            # Folders within folders come and go (one for every epoch, for instance); the others are few.
            with suppress(NoNodeError, NotEmptyError):
                self._connection.ask(lambda client: client.delete_async(self._folder_path(folder)))

    def watch(self, prefix: str, callback: Callable[[], None]) -> Watch:
        watched = PrefixWatch(self._connection, self._root, prefix, callback)
        signal = self._watches.add(prefix, watched.look)
        try:
            watched.begin(signal.raise_)
        except BaseException:
            signal.cancel()
            raise
        return signal

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._watches.add_expired(callback)

    def close(self) -> None:
        self._watches.close()
        self._connection.close()

    def _look_anew(self) -> None:
        for signal in self._watches.all():
            signal.raise_()

    def _read(self, key: str) -> tuple[str, int] | None:
        """What a key holds, and the version of its node."""
        try:
            data, status = self._connection.ask(lambda client: client.get_async(self._path(key)))
        except NoNodeError:
            return None
        return data.decode(), status.version

    def _set(self, key: str, value: str, version: int, again: bool) -> None:
        """Write a value and touch the folder, for those who watch it; raises NoNodeError, BadVersionError."""

        def request(client: Any) -> Any:
            both = client.transaction()
            both.set_data(self._path(key), value.encode(), version)
            both.set_data(self._folder_path(split_key(key)[0]), b"")
            return both.commit_async()

        for result in self._connection.ask(request, again):
            if isinstance(result, NoNodeError | BadVersionError):
                raise result

    def _children(self, path: str) -> Iterable[str]:
        try:
            names: Iterable[str] = self._connection.ask(lambda client: client.get_children_async(path))
        except NoNodeError:
            return []
        return names

    def _folder_path(self, folder: str) -> str:
        return f"{self._root}/{folder_node(folder)}"

    def _path(self, key: str) -> str:
        folder, leaf = split_key(key)
        return f"{self._folder_path(folder)}/{leaf_node(leaf)}"
