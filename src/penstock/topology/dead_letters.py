"""Where tuples go that cannot be processed: a file sink that every topology has, and few need."""

from __future__ import annotations

from penstock.topology.model import (
    Custom,
    Dup,
    ErrorKind,
    Filter,
    FrozenOptions,
    Operator,
    Select,
    Sink,
    Source,
    StreamRef,
    Topology,
)  # fmt: skip
from penstock.topology.window import Window

DEAD_LETTERS = "dead-letters"


def dead_letter_sink(topology: Topology) -> Sink:
    """The sink of a topology's dead letters: the file it names, or `dead-letters/<topology>.jsonl`."""
    file = topology.dead_letters or f"{DEAD_LETTERS}/{topology.name}.jsonl"
    return Sink(DEAD_LETTERS, StreamRef(""), "file", FrozenOptions(file=file, format="json"))


def buries(topology: Topology) -> bool:
    """Whether any record or tuple may end among the dead letters."""
    custom = (operator for operator in topology.operators if isinstance(operator, Custom))
    return (
        any(operator.on_error.kind in (ErrorKind.RETRY, ErrorKind.DEAD_LETTER) for operator in custom)
        or any(source.on_malformed == "dead-letter" for source in topology.sources)
        or bool(burying_windows(topology))
    )


def burying_windows(topology: Topology) -> list[str]:
    """The windows whose late tuples are buried."""
    return [operator.name for operator in topology.operators if isinstance(operator, Window) and operator.buries]


_ONE_FOR_ONE = (Filter, Select, Dup)
"""Kinds of operators that make at most one tuple of one, and remember nothing."""


def why_not_replayed(topology: Topology, operator: str) -> str:
    """Why a dead letter of an operator cannot be replayed; empty when it can.

    What is replayed is the source tuple. That is exact where it comes to nobody but this operator, and as one tuple:
    otherwise others would have it twice.
    """
    node = topology.node(operator)
    if not isinstance(node, Operator):
        return "it never was a tuple: correct the source, and read it again"
    if isinstance(node, Window):
        return f"'{operator}' has closed its windows: it would be too late again"
    while isinstance(node, Operator):
        if len(node.inputs) != 1:
            return f"'{node.name}' has several inputs: others would have the source tuple twice"
        (stream,) = node.inputs
        if len(topology.consumers(stream)) > 1:
            others = " and ".join(f"'{each.name}'" for each in topology.consumers(stream) if each is not node)
            return f"{others} would have the source tuple twice"
        above = topology.node(stream.node)
        if isinstance(above, Operator) and not isinstance(above, _ONE_FOR_ONE):
            return f"'{above.name}', above it, may make several tuples of one, or remember it: all would be there twice"
        node = above
    return "" if isinstance(node, Source) else f"'{operator}' has no source"
