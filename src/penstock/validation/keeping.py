"""Custom operators that keep columns of their tuples: which columns can be kept, and by which code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.model import Custom, Topology
from penstock.topology.problems import Problem
from penstock.validation.columns import unknown_column
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.types import find_column


def check_kept(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Columns that cannot be kept, and code of which it is not known what a kept column would belong to."""
    for operator in topology.operators:
        if not isinstance(operator, Custom) or not operator.keep:
            continue
        for message, hint in (*_code_misfits(operator, topology), *_column_misfits(operator)):
            yield Problem(operator.where, f"operator '{operator.name}': {message}", hint)
        read = input_schema(operator, schemas)
        for name in operator.keep:
            if read is not None and find_column(read, name) is None:
                yield unknown_column(operator, name, read)


def _code_misfits(operator: Custom, topology: Topology) -> Iterator[tuple[str, str]]:
    hint = "remove `keep`, and emit the columns"
    if operator.key:
        yield "code with a key cannot `keep` columns: what it emits may come from a timer, and so from no tuple", hint
    elif operator.input_ports:
        yield "code with several input ports cannot `keep` columns: each port has its own", hint
    elif len(operator.emits) > 1:
        yield "code with several output ports cannot `keep` columns", hint
    else:
        try:
            found = load_user_object(operator.code, topology.folder)
        except TopologyError:
            return  # told elsewhere
        if takes_batches(found):
            yield "a function of a batch cannot `keep` columns: it gives as many rows as it likes", hint
        elif inspect.isclass(found) and not getattr(found, "auto_ack", True):
            yield "a class that acks by itself cannot `keep` columns", hint


def _column_misfits(operator: Custom) -> Iterator[tuple[str, str]]:
    emitted = {name.lower() for _, schema in operator.emits for name in schema.names}
    lower = [name.lower() for name in operator.keep]
    for name in dict.fromkeys(operator.keep):
        if lower.count(name.lower()) > 1:
            yield f"the column '{name}' is kept twice", "remove one"
        if name.lower() in emitted:
            yield f"the column '{name}' is kept and emitted", "remove one, or give what it emits another name"
