"""The delivery guarantee against the sinks: a promise that one of them cannot keep is refused."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.catalogue import Catalogue
from penstock.topology.code import load_user_object
from penstock.topology.model import Delivery, Sink, Topology
from penstock.topology.problems import Problem
from penstock.topology.values import CUSTOM
from penstock.validation.connectors import is_users_own


def check_delivery(topology: Topology, catalogue: Catalogue) -> Iterator[Problem]:
    """Sinks of the user's own that do not keep the promise, or cannot be imported; built-in ones keep every one."""
    for sink in topology.sinks:
        reference = sink.options.get(CUSTOM)
        if is_users_own(sink) and isinstance(reference, str):
            yield from _check_own(sink, reference, topology, catalogue)


def _check_own(sink: Sink, reference: str, topology: Topology, catalogue: Catalogue) -> Iterator[Problem]:
    try:
        found = load_user_object(reference, topology.folder)
    except TopologyError as error:
        yield Problem(sink.where, f"sink '{sink.name}': {error}")
        return
    keeps = [promise.value for promise in Delivery if promise in getattr(found, "keeps", ())]
    if keeps and topology.delivery not in keeps:
        built_in = [kind.name for kind in catalogue.of("sink") if kind.name != CUSTOM]
        yield Problem(
            sink.where,
            f"sink '{sink.name}': {reference} cannot keep {topology.delivery}, only {' and '.join(keeps)}",
            f"{', '.join(built_in)} can; or set delivery: {keeps[-1]}; or, if its commit recognises an epoch that it "
            "has committed before, say so with `keeps = EVERY_GUARANTEE` in the class",
        )
