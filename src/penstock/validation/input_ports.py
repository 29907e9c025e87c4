"""Named input ports: which operators have them, how many, and what custom code must be like to read them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from penstock.errors import TopologyError
from penstock.topology.acking import acks_itself
from penstock.topology.bolt import Bolt
from penstock.topology.code import load_user_object, takes_batches
from penstock.topology.model import Custom, Operator, RouteKind, Topology
from penstock.topology.problems import Problem
from penstock.validation.port_schemas import port_schemas
from penstock.validation.schemas import Schemas
from penstock.validation.suggestions import not_found
from penstock.validation.types import agree, find_column

_KEYWORD = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_input_ports(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Ports where an operator has none, and code that cannot be called with the tuples of its ports."""
    for operator in topology.operators:
        if operator.input_ports and not operator.named_ports and type(operator) is not Operator:
            streams = ", ".join(str(ref) for ref in operator.inputs)
            yield _problem(operator, f"{operator.keyword} has one input, not named ports",
                           f"write `from: [{streams}]` to merge them, or use join or custom")
        elif isinstance(operator, Custom):
            yield from _check_custom(operator, topology)
            yield from _check_fields(operator, schemas)


def _check_custom(operator: Custom, topology: Topology) -> Iterator[Problem]:
    if operator.synchronous:
        yield from _check_synchronous(operator)
    if not operator.input_ports or not operator.code:
        return
    try:
        found = load_user_object(operator.code, topology.folder)
    except TopologyError:
        return  # told with the rest of the code's problems
    if not inspect.isclass(found) and takes_batches(found):
        yield _problem(operator, f"'{operator.code}' is a function of a batch, and a batch is of one port",
                       "write a function of a tuple, or a bolt")
    if acks_itself(operator, topology):
        yield _problem(operator, f"'{operator.code}' acks its tuples itself, which works with one input only",
                       "remove auto_ack = False from the class, or merge the streams before it")
    if operator.synchronous:
        yield from _check_process_epoch(operator, found)


def _check_synchronous(operator: Custom) -> Iterator[Problem]:
    if not operator.input_ports:
        yield _problem(operator, "access: synchronous needs named ports",
                       "write for example `from: {left: a, right: b}`")
    if operator.key:
        yield _problem(operator, "access: synchronous has no keyed state", "remove `key`, or the access")
    if operator.tolerates:
        yield _problem(operator, f"on_error: {operator.on_error} speaks of single tuples, and with access: synchronous "
                                 "the code sees all of an epoch at once", "remove on_error")
    route = operator.route
    if route is not None and route.kind in (RouteKind.SHUFFLE, RouteKind.LOCAL):
        yield _problem(operator, f"with access: synchronous, tuples of all ports must meet, and the route {route} "
                                 "brings them anywhere", "use hash(fields), all or global")
    if route is None and operator.parallelism not in (None, 1):
        yield _problem(operator, f"parallelism {operator.parallelism} and access: synchronous need to know which "
                                 "tuples belong together", "add for example route: hash(user)")


def _check_process_epoch(operator: Custom, found: object) -> Iterator[Problem]:
    if not inspect.isclass(found):
        yield _problem(operator, f"access: synchronous needs a class with process_epoch, and '{operator.code}' is none",
                       "derive one from penstock.Bolt")
        return
    method = getattr(found, "process_epoch", None)
    if method is None or method is Bolt.process_epoch:
        ports = ", ".join(operator.by_port())
        yield _problem(operator, f"class '{found.__name__}' has no process_epoch(self, {ports})", "add it")
        return
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    accepted = [parameter.name for parameter in parameters if parameter.kind in _KEYWORD]
    for port in operator.by_port():
        if port not in accepted:
            yield not_found(operator.where, f"operator '{operator.name}': '{found.__name__}.process_epoch' has no "
                                            f"argument for the port '{port}'", port, accepted, "it has")
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.kind in _KEYWORD
        if needed and parameter.name not in operator.by_port():
            yield _problem(operator, f"'{found.__name__}.process_epoch' needs '{parameter.name}', and there is no such "
                                     "port", f"its ports are {', '.join(operator.by_port())}")


def _check_fields(operator: Custom, schemas: Schemas) -> Iterator[Problem]:
    """Fields by which the tuples of all ports are divided: each port has them, with the same type."""
    fields = (*(operator.route.fields if operator.route else ()), *operator.key)
    ports = port_schemas(operator, schemas)
    for name in dict.fromkeys(fields):
        types: dict[str, str] = {}
        for port, schema in ports.items():
            column = find_column(schema, name) if schema is not None else None
            if column is not None:
                types[port] = column.type
            elif schema is not None:
                yield not_found(operator.where, f"operator '{operator.name}': port '{port}' has no column '{name}'",
                                name, schema.names, "it has")
        (first, type_), *others = types.items() or [("", "")]
        for port, other in others:
            if not agree(type_, other):
                yield _problem(operator, f"'{name}' is {type_} on port '{first}' and {other} on port '{port}', so "
                                         "equal values would not meet", "cast one of them with a select before it")


def _problem(operator: Operator, message: str, hint: str = "") -> Problem:
    return Problem(operator.where, f"operator '{operator.name}': {message}", hint)
