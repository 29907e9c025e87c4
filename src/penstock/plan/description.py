"""What a node is and does, in few words; the terminal and the picture say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from penstock.topology.durations import write_duration
from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import (
    DEFAULT_PORT,
    Count,
    Custom,
    Explode,
    Filter,
    Operator,
    Route,
    Select,
    Sink,
    Source,
    Uniq,
)
from penstock.topology.window import Window

Node = Source | Operator | Sink

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*:)\S*(?=@)|(?<=[?&]password=)[^&\s]*")
"""The password in an address such as `postgresql://user:password@host/db`, or in its options."""


class Role(StrEnum):
    """What a reader wants to tell apart at a glance."""

    SOURCE = "source"
    NATIVE = "native"
    PYTHON = "python"
    STATEFUL = "stateful"
    SINK = "sink"


def role_of(node: Node) -> Role:
    """The role of a node; only custom operators enter Python, built-in ones never do."""
    match node:
        case Source():
            return Role.SOURCE
        case Sink():
            return Role.SINK
        case Custom():
            return Role.PYTHON
        case _:
            return Role.STATEFUL if node.stateful else Role.NATIVE


def brief_of(node: Node) -> str:
    """One line on what a node does, whitespace collapsed, of any length."""
    match node:
        case Source():
            words = f"{_connector(node.kind, node.options)}" + (f" ({node.schema})" if node.schema else "")
        case Sink():
            words = _connector(node.kind, node.options)
        case Filter():
            words = f"filter {node.condition}"
        case Select():
            words = f"select {', '.join(node.columns)}"
        case Explode():
            words = f"explode {node.expression} as {node.alias}"
        case Uniq():
            words = f"uniq {', '.join(node.keys)}"
        case Count():
            words = ("count per " + ", ".join(node.keys) if node.keys else "count") + (
                ", each" if node.emit == "each" else "")
        case Window():
            words = _window_words(node)
        case Join():
            words = _join_words(node)
        case Enrich():
            left = "left " if node.keeps_left else ""
            words = f"{left}enrich from {_masked(node.table)} by {', '.join(node.keys)}"
        case Custom():
            words = f"{node.code}{_emitted(node)}" + (f", on error {node.on_error}" if node.tolerates else "")
        case _:
            words = node.keyword
    return " ".join(words.split())


def _join_words(node: Join) -> str:
    left = "left " if node.keeps_left else ""
    within = write_duration(round(node.within * 1000)) if node.within else "0s"
    time = "" if node.on else " of epochs"
    return f"{left}join {node.condition} within {within}{time}"


def _window_words(node: Window) -> str:
    time = "" if node.counts_tuples else f" on {node.on}" if node.on else " of epochs"
    keys = f" by {', '.join(node.keys)}" if node.keys else ""
    changes = "" if node.closes else f", {node.emit}"
    function = node.function
    computed = f"{function.code}{_emitted(function)}" if function else ", ".join(node.compute)
    return f"{node.span}{time}{keys}: {computed}{changes}"


def route_label(route: Route, parallelism: int | None) -> str:
    """A route as it stands on an edge: `hash(user) ×2`."""
    return f"{route} ×{parallelism}" if parallelism else str(route)


def counted(number: int, noun: str) -> str:
    """`1 source`, `2 sources`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _emitted(node: Custom) -> str:
    if not node.emits:
        return ""
    if node.keep:
        return f" → {', '.join(node.keep)}, {node.schema_of(DEFAULT_PORT)}"
    if node.output_ports() == (DEFAULT_PORT,):
        return f" → {node.schema_of(DEFAULT_PORT)}"
    return " → " + "; ".join(f"{port or 'default'}: {schema}" for port, schema in node.emits)


def _connector(kind: str, options: Mapping[str, Any]) -> str:
    """The kind and its main argument; other options may hold secrets and are never shown."""
    argument = options.get(kind)
    match argument:
        case None | "":
            return kind
        case Mapping():
            return f"{kind} {', '.join(str(key) for key in argument)}"
        case list() | tuple():
            return f"{kind} {', '.join(_masked(each) for each in argument)}"
        case _:
            return f"{kind} {_masked(argument)}"


def _masked(argument: Any) -> str:
    """As text, without a password that stands in it."""
    return _PASSWORD.sub(lambda found: f"{found[1] or ''}***", str(argument))
