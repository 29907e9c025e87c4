"""Sources and sinks against the catalogue: their kinds, their options, and files written twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import TopologyError
from penstock.topology.catalogue import Catalogue, Kind, Role
from penstock.topology.model import Sink, Source, Topology
from penstock.topology.problems import Problem, suggest
from penstock.topology.values import CUSTOM, to_option
from penstock.validation.suggestions import not_found

_OWN_FIELDS = ("schema", "on_malformed")
"""What the model keeps apart from a source's options, though a kind may list it among them."""


def check_connectors(topology: Topology, catalogue: Catalogue) -> Iterator[Problem]:
    """Options that are unknown, missing or of the wrong type; a user's own connectors are let through."""
    for source in topology.sources:
        yield from _check_connector(source, catalogue)
    for sink in topology.sinks:
        yield from _check_connector(sink, catalogue)
    yield from _written_twice(topology, catalogue)


def _check_connector(node: Source | Sink, catalogue: Catalogue) -> Iterator[Problem]:
    if is_users_own(node) or not node.kind:  # without a kind the reader has said so already
        return
    role: Role = "source" if isinstance(node, Source) else "sink"
    subject = f"{role} '{node.name}'"
    kind = catalogue.find(role, node.kind)
    if kind is None:
        known = [kind.name for kind in catalogue.of(role)]
        yield not_found(node.where, f"{subject}: no kind of {role} '{node.kind}'", node.kind, known)
        return
    yield from _check_options(subject, node, kind)


def _check_options(subject: str, node: Source | Sink, kind: Kind) -> Iterator[Problem]:
    known = {option.name: option for option in kind.options}
    if kind.argument is not None:
        known[kind.name] = kind.argument
    given = {name for name, value in node.options.items() if value is not None}
    if isinstance(node, Source):
        given |= {"on_malformed"} | ({"schema"} if node.schema is not None else set())
    misspelt = ""
    for name, value in node.options.items():
        option = known.get(name)
        if option is None and name != kind.name:
            misspelt += suggest(name, known)
            message = f"{subject}: {kind.name} has no option '{name}'"
            yield not_found(node.where, message, name, known, "it has")
        elif option is not None and value is not None and name not in _OWN_FIELDS:
            try:
                to_option(option, value)
            except TopologyError as error:
                yield Problem(node.where, f"{subject}: {name}: {error}")
    for name, option in known.items():
        # An option that was given under a misspelt name is one mistake, not two.
        if option.required and name not in given and f"'{name}'" not in misspelt:
            yield Problem(node.where, f"{subject}: {kind.name} needs '{name}'", option.doc)


def is_users_own(node: Source | Sink) -> bool:
    """Whether the connector is the user's own class, which knows its options itself."""
    return node.kind == CUSTOM or ":" in node.kind


def _written_twice(topology: Topology, catalogue: Catalogue) -> Iterator[Problem]:
    """Two sinks on one file would overwrite each other's epochs."""
    writers: dict[str, Sink] = {}
    for sink in topology.sinks:
        kind = catalogue.find("sink", sink.kind)
        path = sink.options.get(sink.kind)
        if kind is None or kind.argument is None or kind.argument.type != "path" or not isinstance(path, str):
            continue
        place = os.path.normpath(topology.folder / Path(path).expanduser())
        first = writers.setdefault(place, sink)
        if first is not sink:
            message = f"sink '{sink.name}' writes to '{path}', and so does sink '{first.name}'"
            yield Problem(sink.where, message,
                          "give each sink a file of its own, or merge the streams with union")
