"""Custom operators with a key: what a key can be, and which code can have one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.bolt import has_timers
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.model import Custom, Topology
from penstock.topology.problems import Problem
from penstock.validation.port_schemas import port_schemas
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.types import find_column

NOT_FOR_KEYS = ("float", "double", "array", "map", "struct", "variant", "interval", "void")
"""The beginnings of the names of types that make no key: equal values of these are not always the same bytes."""

_CAST = "cast it in a select before it, or choose another column"


def check_keyed(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Keys that cannot be told apart, and code that cannot have a state, or that needs one."""
    for operator in topology.operators:
        if isinstance(operator, Custom):
            yield from _check_types(operator, schemas)
            yield from _check_code(operator, topology)


def _check_types(operator: Custom, schemas: Schemas) -> Iterator[Problem]:
    of_ports = port_schemas(operator, schemas).values() or (input_schema(operator, schemas),)
    columns = (find_column(read, name) for read in of_ports if read is not None for name in operator.key)
    for column in dict.fromkeys(columns):
        if column is not None and column.type.startswith(NOT_FOR_KEYS):
            yield Problem(
                operator.where,
                f"operator '{operator.name}': column '{column.name}' is {column.type}, which makes no key",
                _CAST,
            )


def _check_code(operator: Custom, topology: Topology) -> Iterator[Problem]:
    subject = f"operator '{operator.name}'"
    try:
        found = load_user_object(operator.code, topology.folder) if operator.code else None
    except TopologyError:
        return  # reported with the rest of custom code
    if not operator.key:
        if has_timers(found):
            yield Problem(
                operator.where, f"{subject}: its class has on_timer, and timers belong to a key", "add `key: COLUMN`"
            )
        return
    if callable(found) and not inspect.isclass(found) and takes_batches(found):
        yield Problem(
            operator.where,
            f"{subject}: a function of a batch has no key: a batch has many",
            "write a function of a tuple, or a Bolt",
        )
