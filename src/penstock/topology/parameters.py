"""What a function of a tuple takes: the tuple, or the values of the columns that its parameters are named after."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from penstock.topology.code import takes_batches

CONTEXT = "context"
"""The parameter that is given the context, whatever else a function takes."""
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def column_parameters(
    function: Callable[..., Any], columns: Collection[str], arguments: Collection[str]
) -> tuple[str, ...] | None:
    """The columns whose values a function takes, in the order of its parameters; None where it takes the tuple.

    It takes columns when its first parameter is named after one, leaving aside what `arguments` give, and
    the context.
    """
    if takes_batches(function) or _by_place_only(function):
        return None
    names = [name for name in _names(function) if name != CONTEXT and name not in arguments]
    if not names or names[0] not in columns:
        return None
    return tuple(name for name in names if name in columns)


def called_with_values(
    function: Callable[..., Any], names: tuple[str, ...], arguments: dict[str, Any]
) -> Callable[..., Any]:
    """`function`, to be called with the values of the columns `names` by position; `arguments` are given by name."""
    if tuple(_names(function))[: len(names)] == names and not _by_name_only(function, names):
        return partial(function, **arguments) if arguments else function

    def call(*values: Any) -> Any:
        return function(**dict(zip(names, values, strict=True)), **arguments)

    return call


def with_context(function: Callable[..., Any], arguments: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What a function is given besides the tuple or its columns: the context where it asks for it."""
    return {**arguments, CONTEXT: context} if CONTEXT in _names(function) else dict(arguments)


def _names(function: Callable[..., Any]) -> Iterator[str]:
    """The parameters that can be given by name."""
    yield from (each.name for each in _parameters(function) if each.kind in _BY_NAME)


def _by_place_only(function: Callable[..., Any]) -> bool:
    first = next(iter(_parameters(function)), None)
    return first is not None and first.kind not in _BY_NAME


def _by_name_only(function: Callable[..., Any], names: tuple[str, ...]) -> bool:
    return any(each.name in names and each.kind is each.KEYWORD_ONLY for each in _parameters(function))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # functions written in C may not tell
        return []
