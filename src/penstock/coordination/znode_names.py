"""How keys become names in ZooKeeper.

A key is a folder and a leaf, parted after the last slash: `round/7/a` is the leaf `a` in the folder `round/7/`.
A folder is one node below the root, its inner slashes escaped, and its leaves are the nodes below it. So every
entry is a node without children, as ephemeral nodes must be, and a folder is listed with one request.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_NOTHING = "%"
"""The node of an empty leaf, and of the folder of keys without a slash; no escaped text looks like it."""
_LONE_SLASH = "%%"


def split_key(key: str) -> tuple[str, str]:
    """The folder, with its last slash, and the leaf."""
    folder, slash, leaf = key.rpartition("/")
    return folder + slash, leaf


def folder_node(folder: str) -> str:
    if not folder:
        return _NOTHING
    return _escaped(folder[:-1]) or _LONE_SLASH


def folder_of_node(node: str) -> str:
    if node == _NOTHING:
        return ""
    return "/" if node == _LONE_SLASH else f"{unquote(node)}/"


def leaf_node(leaf: str) -> str:
    return _escaped(leaf) or _NOTHING


def leaf_of_node(node: str) -> str:
    return "" if node == _NOTHING else unquote(node)


def may_hold(folder: str, prefix: str) -> bool:
    """Whether a folder may hold keys that begin with `prefix`."""
    if not folder:
        return "/" not in prefix
    return prefix.startswith(folder) or folder.startswith(prefix)


def _escaped(text: str) -> str:
    # ZooKeeper knows no nodes `.` and `..`.
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")
