"""Keys and hash routes: their fields must be columns of what the operator reads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.topology.model import Count, Custom, Operator, Topology, Uniq
from penstock.topology.problems import Problem
from penstock.topology.schema import Schema
from penstock.topology.window import Window
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.suggestions import not_found
from penstock.validation.types import find_column


def check_keys(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Keys of operators with state, and fields of hash routes, that are no columns or cannot be used."""
    for operator in topology.operators:
        subject = f"operator '{operator.name}'"
        keys = keys_of(operator)
        if isinstance(operator, Uniq) and not keys:
            yield Problem(operator.where, f"{subject}: uniq needs the columns that make the key",
                          "write for example `uniq: user`")
        if isinstance(operator, Count) and any(key.lower() == "count" for key in keys):
            yield Problem(operator.where, f"{subject}: its key and its count would both be named 'count'",
                          "rename it with a select before it")
        for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
            yield Problem(operator.where, f"{subject}: the key '{key}' is written twice", "remove one")
        read = input_schema(operator, schemas)
        fields = operator.route.fields if operator.route else ()
        for name in dict.fromkeys((*keys, *fields)):
            if read is not None and find_column(read, name) is None:
                yield unknown_column(operator, name, read)


def keys_of(operator: Operator) -> tuple[str, ...]:
    """The columns by which a stateful operator divides its state."""
    if isinstance(operator, Custom):
        return operator.key
    return operator.keys or () if isinstance(operator, Uniq | Count | Window) else ()


def unknown_column(operator: Operator, name: str, read: Schema) -> Problem:
    """Say that an operator's input has no such column, and which it has."""
    message = f"operator '{operator.name}': no column '{name}'"
    return not_found(operator.where, message, name, read.names, "it reads")
