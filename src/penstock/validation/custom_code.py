"""Custom operators: that the user's code is there, and can be called the way Penstock calls it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from penstock.errors import TopologyError
from penstock.topology.bolt import Bolt
from penstock.topology.code import load_user_object
from penstock.topology.model import Custom, Topology, own_function
from penstock.topology.parameters import CONTEXT, column_parameters
from penstock.topology.problems import Problem, suggest
from penstock.topology.window import Window
from penstock.validation.schemas import Schemas, input_schema

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_custom_code(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Import the code of every custom operator and see whether its signature fits. Calls none of it."""
    for node in topology.operators:
        operator = own_function(node)
        if operator is None:
            continue
        subject = f"operator '{operator.name}'"
        if not operator.emits:
            yield Problem(operator.where, f"{subject}: what it emits is missing",
                          "add for example `emits: \"word string, length int\"`")
        if not operator.code:
            yield Problem(operator.where, f"{subject}: its code is missing",
                          "write `custom: module:function`")
            continue
        try:
            if isinstance(node, Window):
                complaints = [*_window_misfits(operator, topology)]
            else:
                complaints = [*_misfits(operator, topology, schemas), *_ack_misfits(operator, topology)]
        except TopologyError as error:
            complaints = [(str(error), "")]
        for message, hint in complaints:
            yield Problem(operator.where, f"{subject}: {message}", hint)


def _misfits(operator: Custom, topology: Topology, schemas: Schemas) -> Iterator[tuple[str, str]]:
    found = load_user_object(operator.code, topology.folder)
    owner_path, _, method = operator.code.rpartition(".")
    owner = load_user_object(owner_path, topology.folder) if ":" in owner_path else None
    if inspect.isclass(found):
        yield from _bolt_misfits(found, operator)
    elif not callable(found):
        yield f"'{operator.code}' is {_a(type(found).__name__)}, not a function or a class", ""
    elif inspect.isclass(owner):
        yield from _constructor_misfits(owner)
        yield from _call_misfits(found, operator.code, operator.arguments, bound=_takes_self(owner, method))
    else:
        yield from _function_misfits(found, operator, schemas)


def _function_misfits(function: Callable[..., Any], operator: Custom, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """What keeps a function of a tuple, or of the columns that its parameters are named after, from being called."""
    read = input_schema(operator, schemas)
    if read is None and not operator.input_ports:
        # Any parameter may be a column.
        signature = _signature(function)
        names = () if signature is None else tuple(signature.parameters)
        yield from _call_misfits(function, operator.code, operator.arguments, provided=(CONTEXT, *names))
        return
    columns = () if read is None else read.names
    taken = column_parameters(function, columns, operator.arguments)
    if taken is None:
        yield from _call_misfits(function, operator.code, operator.arguments)
        return
    yield from _async_misfits(function, operator.code)
    yield from _argument_misfits(function, operator.code, operator.arguments, provided=(CONTEXT, *taken), near=columns)


def _window_misfits(operator: Custom, topology: Topology) -> Iterator[tuple[str, str]]:
    """What keeps `function(window, tuples, **arguments)` from being called."""
    found = load_user_object(operator.code, topology.folder)
    if inspect.isclass(found) or not callable(found):
        kind = "a class" if inspect.isclass(found) else _a(type(found).__name__)
        yield f"'{operator.code}' is {kind}, not a function", "write def name(window, tuples): …"
        return
    yield from _call_misfits(found, operator.code, operator.arguments, given=("the window", "its tuples"))


def _bolt_misfits(bolt: type, operator: Custom) -> Iterator[tuple[str, str]]:
    process = getattr(bolt, "process", None)
    if not operator.synchronous and (process is None or process is Bolt.process):
        yield (f"class '{bolt.__name__}' has no process(self, tup)",
               "add it, or name a method: module:Class.method")
        return
    yield from _constructor_misfits(bolt)
    if process is not None:
        yield from _call_misfits(process, f"{bolt.__name__}.process", (), bound=_takes_self(bolt, "process"))
    initialize = getattr(bolt, "initialize", None)
    if callable(initialize):
        yield from _argument_misfits(initialize, f"{bolt.__name__}.initialize", operator.arguments,
                                     skip=int(_takes_self(bolt, "initialize")))
    elif operator.arguments:
        yield (f"class '{bolt.__name__}' has no initialize to take {_listed(operator.arguments)}",
               "add initialize(self, …), or remove `with`")


def _ack_misfits(operator: Custom, topology: Topology) -> Iterator[tuple[str, str]]:
    """What keeps a class from acking its tuples itself."""
    found = load_user_object(operator.code, topology.folder)
    if not inspect.isclass(found):
        return
    acks = not getattr(found, "auto_ack", True)
    if acks and not issubclass(found, Bolt):
        yield f"class '{found.__name__}' has auto_ack = False, but is no Bolt", "derive it from penstock.Bolt"
    elif acks and not topology.acking:
        yield (f"class '{found.__name__}' acks its tuples itself (auto_ack = False), and nobody looks at its acks",
               "add `acking: true` to the topology")
    elif acks and operator.key:
        yield (f"class '{found.__name__}' acks its tuples itself, and has a key: its state cannot wait for an ack",
               "remove `key`, or ack in an operator behind it")
    elif acks and operator.input_ports:
        yield (f"class '{found.__name__}' acks its tuples itself, and has several input ports",
               "merge the streams first, or ack in an operator behind it")
    elif not acks and issubclass(found, Bolt) and found.finish is not Bolt.finish:
        yield (f"class '{found.__name__}' has finish(self), which is called only where tuples wait for their ack",
               "set auto_ack = False in the class and ack every tuple, or rename the method")


def _constructor_misfits(owner: type) -> Iterator[tuple[str, str]]:
    signature = _signature(owner)
    parameters = signature.parameters.values() if signature else ()
    needed = [parameter.name for parameter in parameters if _needed(parameter)]
    if needed:
        yield (f"class '{owner.__name__}' cannot be made without arguments: it needs {_listed(needed)}",
               "give them defaults")
    elif inspect.isabstract(owner):
        missing = sorted(getattr(owner, "__abstractmethods__", ()))
        yield f"class '{owner.__name__}' is abstract: it lacks {_listed(missing)}", ""


def _call_misfits(
    function: Callable[..., Any], name: str, arguments: Iterable[str], bound: bool = False,
    given: tuple[str, ...] = ("the tuple",), provided: Collection[str] = (CONTEXT,)
) -> Iterator[tuple[str, str]]:
    """What keeps `function(tuple, **arguments)` from being called; `given` is what it gets besides `arguments`."""
    yield from _async_misfits(function, name)
    signature = _signature(function)
    if signature is None:
        return
    parameters = list(signature.parameters.values())[int(bound):]
    takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    if len(positional) < len(given) and not takes_any:
        takes = f"{len(positional)}" if positional else "no"
        yield (f"'{name}' takes {takes} argument, and is called with {' and '.join(given)}",
               "add one" if len(given) - len(positional) == 1 else "add both")
        return
    yield from _argument_misfits(function, name, arguments, skip=int(bound) + min(len(positional), len(given)),
                                 provided=provided)


def _async_misfits(function: Callable[..., Any], name: str) -> Iterator[tuple[str, str]]:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        yield f"'{name}' is async", "make it an ordinary function"


def _argument_misfits(
    function: Callable[..., Any], name: str, arguments: Iterable[str], skip: int = 0, provided: Collection[str] = (),
    near: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """What is missing from `with`, or too much in it, for the parameters after the first `skip`.

    `provided` are parameters that Penstock itself fills in, and `near` names of which one may have been meant.
    """
    signature = _signature(function)
    if signature is None:
        return
    given = list(arguments)
    parameters = list(signature.parameters.values())[skip:]
    accepted = [parameter.name for parameter in parameters if parameter.kind in _KEYWORD]
    needed = [parameter.name for parameter in parameters if _needed(parameter)]
    needed = [name for name in needed if name not in given and name not in provided]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    unknown = [] if takes_any else [argument for argument in given if argument not in accepted]
    for argument in unknown:
        near = suggest(argument, accepted)
        yield f"'{name}' has no argument '{argument}', which `with` gives" + (f": {near}" if near else ""), ""
        # The misspelt argument is the missing one: one mistake, one problem.
        needed = [need for need in needed if f"'{need}'" not in near]
    if needed:
        hint = suggest(needed[0], near)
        yield f"'{name}' needs {_listed(needed)}", hint or "give it under `with`, or give it a default"


def _takes_self(owner: type, method: str) -> bool:
    """Whether `owner.method`, got from the class, still has `self` as its first parameter."""
    return not isinstance(inspect.getattr_static(owner, method), staticmethod | classmethod)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """None for what does not tell, such as functions written in C."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _a(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"
