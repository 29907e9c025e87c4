"""Where tuples go that cannot be processed: a file sink that every topology has, and few need."""

from __future__ import annotations

from penstock.topology.model import Custom, ErrorKind, FrozenOptions, Sink, StreamRef, Topology
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
