"""Open the coordinator that a URL names."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.coordination.base import SESSION_TTL_SECONDS, Coordinator
from penstock.errors import TopologyError

_FORMS = "write sqlite:/path/to/file or zookeeper://host:port[,host:port]/root"


def open_coordinator(url: str, ttl: float = SESSION_TTL_SECONDS) -> Coordinator:
    """The coordinator at `sqlite:/path/to/file` or `zookeeper://host:port[,host:port]/root`.

    Raises TopologyError if the URL makes no sense, and CoordinationError if nobody answers within a few
    seconds. `ttl` is how many seconds a session outlives the last sign of life of its owner.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        if not rest.strip("/"):
            raise TopologyError(f"coordinator '{url}' names no file; write sqlite:/path/to/file")
        # Imported where it is needed: a run uses one of them.
        from penstock.coordination.sqlite import SqliteCoordinator

        return SqliteCoordinator(Path(rest), ttl)
    if scheme == "zookeeper":
        hosts, root = _zookeeper_address(url, rest)
        from penstock.coordination.zookeeper import ZookeeperCoordinator

        return ZookeeperCoordinator(hosts, root, ttl)
    raise TopologyError(f"'{url}' is no coordinator that Penstock knows; {_FORMS}")


def _zookeeper_address(url: str, rest: str) -> tuple[str, str]:
    hosts, slash, root = rest.removeprefix("//").rstrip("/").partition("/")
    if not rest.startswith("//") or not all(re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):\d{1,5}", host)
                                            for host in hosts.split(",")):
        raise TopologyError(f"coordinator '{url}' has no proper addresses of servers; {_FORMS}")
    if not slash or not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", root) or {".", ".."} & set(root.split("/")):
        raise TopologyError(
            f"coordinator '{url}' names no root, the node below which its entries are kept; "
            f"for instance zookeeper://{hosts}/penstock"
        )
    return hosts, f"/{root}"
