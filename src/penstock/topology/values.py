"""Plain values turned into the model's: what the YAML reader and the Python builder have in common.

Every function here raises TopologyError with a message that names the value; the callers know where it
was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any

from penstock.errors import TopologyError
from penstock.topology.catalogue import Kind, Option, describe_field, option_key
from penstock.topology.durations import parse_duration
from penstock.topology.environment import Outside
from penstock.topology.model import (
    DEFAULT_PORT,
    FrozenOptions,
    OnError,
    Operator,
    Route,
    StreamRef,
)
from penstock.topology.on_error import parse_on_error
from penstock.topology.problems import suggest
from penstock.topology.routes import parse_route
from penstock.topology.schema import Schema, parse_schema, split_top_level
from penstock.topology.sql_text import split_sql
from penstock.topology.window import Span, parse_emission, parse_span

ON_MALFORMED = ("fail", "drop", "dead-letter")
LOGGING = ("light", "full")
CUSTOM = "custom"
"""The kind of a user's own connector, `custom: module:Class`; it takes whatever options it likes."""

LONGEST_NAME = 100
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def check_name(name: str) -> str:
    """A topology's, node's or port's name."""
    if len(name) > LONGEST_NAME:
        raise TopologyError(f"'{name[:20]}…' is too long for a name: it has {len(name)} characters, and {LONGEST_NAME} "
                            "are the most")  # fmt: skip
    if not _NAME.fullmatch(name):
        raise TopologyError(f"'{name}' cannot be a name: use letters, digits, - and _")
    return name


def to_text(value: object) -> str:
    if not isinstance(value, str):
        raise TopologyError(f"{shown(value)} is not text; put it in quotes")
    return str(value)


def to_filled_text(value: object) -> str:
    """Text that says something, without blanks around it."""
    text = to_text(value).strip()
    if not text:
        raise TopologyError("an empty text")
    return text


def to_integer(value: object) -> int:
    if isinstance(value, Outside) and re.fullmatch(r"\s*[-+]?\d+\s*", value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TopologyError(f"{shown(value)} is not a whole number")
    return value


def to_number(value: object) -> float:
    if isinstance(value, Outside):
        try:
            value = float(value)
        except ValueError:
            raise TopologyError(f"{shown(value)} is not a number") from None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise TopologyError(f"{shown(value)} is not a number")
    return float(value)


def to_boolean(value: object) -> bool:
    if isinstance(value, Outside) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise TopologyError(f"{shown(value)} is not true or false")
    return value


def to_seconds(value: object) -> float:
    """A duration: a number of seconds, or `500ms`, `2s`, `1m`, `1 hour`."""
    written = parse_duration(value) if isinstance(value, str) else None
    try:
        seconds = to_number(value) if written is None else written
    except TopologyError:
        raise TopologyError(f"{shown(value)} is not a duration: write seconds, or 500ms, 2s, 1m") from None
    if seconds < 0:
        raise TopologyError(f"{shown(value)} is not a duration: it is negative")
    return seconds


def to_choice(value: object, choices: tuple[str, ...]) -> str:
    text = to_filled_text(value)
    if text not in choices:
        near = suggest(text, choices)
        raise TopologyError(f"'{text}' is not one of {', '.join(choices)}" + (f": {near}" if near else ""))
    return text


def to_columns(value: object) -> tuple[str, ...]:
    """The names of columns: `a, b` or a list; none for nothing."""
    if value is None:
        return ()
    parts = split_top_level(value) if isinstance(value, str) else _texts(value, "column names")
    names = tuple(_unquoted(part.strip()) for part in parts)
    for name in names:
        if not name:
            raise TopologyError("an empty column name")
        if names.count(name) > 1:
            raise TopologyError(f"column '{name}' is named twice")
    return names


def to_cells(value: object) -> tuple[str, ...]:
    """Failure domains: `a, b` or a list. Spark's addresses have commas of their own: `spark://a:7077,b:7077`."""
    written = re.split(r",\s+", to_filled_text(value)) if isinstance(value, str) else value
    if not isinstance(written, Sequence) or not written:
        raise TopologyError(f"{shown(value)} names no cells; write local, any, or a list of Spark masters")
    return tuple(to_filled_text(cell) for cell in written)


def to_expressions(value: object) -> tuple[str, ...]:
    """SQL expressions: `a, b as c`, a list of them, or a mapping from new name to expression."""
    if isinstance(value, Mapping) and value:
        return tuple(name_expression(to_filled_text(text), str(name)) for name, text in value.items())
    parts = split_sql(value) if isinstance(value, str) else _texts(value, "expressions")
    expressions = tuple(part.strip() for part in parts)
    if not expressions or not all(expressions):
        raise TopologyError("an empty expression; write for example 'user, upper(url) as url'")
    return expressions


def name_expression(expression: str, name: str) -> str:
    """`expression as name`, or the bare column where it keeps its name."""
    if expression == name:
        return name
    return f"{expression} as {name if _IDENTIFIER.fullmatch(name) else f'`{name}`'}"


def to_schema(value: object) -> Schema:
    return value if isinstance(value, Schema) else parse_schema(to_text(value))


def to_emits(value: object) -> tuple[tuple[str, Schema], ...]:
    """What an operator emits: one schema, or a mapping from port to schema."""
    if not isinstance(value, Mapping):
        return ((DEFAULT_PORT, to_schema(value)),)
    if not value:
        raise TopologyError("no port; write a schema, or a mapping from port to schema")
    return tuple((check_name(str(port)), _port_schema(str(port), schema)) for port, schema in value.items())


def to_route(value: object) -> Route:
    return value if isinstance(value, Route) else parse_route(to_filled_text(value))


def to_on_error(value: object) -> OnError:
    return value if isinstance(value, OnError) else parse_on_error(to_filled_text(value))


def to_window(value: object) -> Span:
    return value if isinstance(value, Span) else parse_span(to_filled_text(value))


def to_times(value: object) -> tuple[tuple[str, str], ...]:
    """The columns with times: one name for every port, or a mapping from port to name."""
    if isinstance(value, Mapping):
        return tuple((check_name(str(port)), _unquoted(to_filled_text(name))) for port, name in value.items())
    return ((DEFAULT_PORT, _unquoted(to_filled_text(value))),)


def to_code(value: object) -> str:
    text = to_filled_text(value)
    if not _CODE.fullmatch(text):
        raise TopologyError(f"'{text}' is not code: write module:function or module:Class")
    return text


def to_options(value: object) -> FrozenOptions:
    """A mapping of whatever the user likes, copied so that nobody can change it later."""
    if value is None:
        return FrozenOptions()
    if not isinstance(value, Mapping):
        raise TopologyError(f"{shown(value)} is not a mapping of names to values")
    return FrozenOptions((str(key), to_plain(item)) for key, item in value.items())


def to_plain(value: object) -> Any:
    """A copy in dicts and lists, so that YAML's and Python's values compare equal."""
    if isinstance(value, Outside):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def to_stream(value: object) -> StreamRef:
    """The stream `name` or `name.port`."""
    node, dot, port = to_filled_text(value).partition(".")
    if not _NAME.fullmatch(node) or (dot and not _NAME.fullmatch(port)):
        raise TopologyError(f"{shown(value)} is not a stream: write a name, or name.port")
    return StreamRef(node, port)


def to_streams(value: object) -> tuple[StreamRef, ...]:
    """One stream, or a list of them."""
    if isinstance(value, str | StreamRef):
        return (value if isinstance(value, StreamRef) else to_stream(value),)
    if not isinstance(value, list | tuple) or not value:
        raise TopologyError(f"{shown(value)} is not a stream, nor a list of streams")
    return tuple(item if isinstance(item, StreamRef) else to_stream(item) for item in value)


_CONVERSIONS: dict[str, Callable[[object], Any]] = {
    "string": to_text,
    "path": to_filled_text,
    "expression": to_filled_text,
    "expressions": to_expressions,
    "columns": to_columns,
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "duration": to_seconds,
    "mapping": to_options,
    "schema": to_schema,
    "emits": to_emits,
    "route": to_route,
    "code": to_code,
    "on_error": to_on_error,
    "window": to_window,
    "emission": lambda value: parse_emission(to_filled_text(value)),
    "times": to_times,
}


def to_option(option: Option, value: object) -> Any:
    """`value` as the model keeps an option of this type; a type without a rule is kept as it is."""
    if option.type == "choice":
        return to_choice(value, option.choices)
    converted = _CONVERSIONS.get(option.type, to_plain)(value)
    if option.minimum is not None and isinstance(converted, int | float) and converted < option.minimum:
        raise TopologyError(f"{converted:g} is too small: at least {option.minimum:g}")
    return converted


def to_field(field: Field[Any], value: object) -> Any:
    """`value` for a field of the model, as `option()` describes it."""
    return to_option(describe_field(field), value)


def to_connector_option(option: Option, value: object) -> Any:
    """A connector's option as given, after a look whether it has the right type.

    Only text from outside the file is changed: it takes the type of the option.
    """
    converted = to_option(option, value)
    if not isinstance(value, Outside):
        return to_plain(value)
    return converted if option.type in ("integer", "number", "boolean") else str(value)


def to_kind_argument(kind: Kind, value: object) -> Any:
    """The value written at a kind's name. A kind without argument takes null, or true as in Python."""
    if kind.role != "operator":
        value = to_connector_argument(value)
    if kind.argument is None:
        if value is None or value is True:
            return None
        raise TopologyError(f"it takes no value, but has {shown(value)}")
    if value is None:
        if needs_argument(kind):
            raise TopologyError(f"no value is given; it takes: {kind.argument.doc}")
        return kind.argument.default if kind.role == "operator" else None
    return to_option(kind.argument, value) if kind.role == "operator" \
        else to_connector_option(kind.argument, value)


def to_connector_argument(value: object) -> Any:
    """`console: true` and `console:` are the same: nothing but the kind is said."""
    return None if value is True else value


def needs_argument(kind: Kind) -> bool:
    """Whether the value at the kind's name must be given."""
    if kind.argument is None:
        return False
    return kind.argument.required or (kind.role == "operator" and kind.argument.default is None)


def operator_fields(operator: type[Operator]) -> dict[str, Field[Any]]:
    """The fields of an operator that users set, by the key they write."""
    described = (field for field in fields(operator) if "doc" in field.metadata)
    return {operator.keyword if field.name == operator.argument else option_key(field): field
            for field in described}


def shown(value: object) -> str:
    """A value for a message, on one short line."""
    if value is None:
        return "nothing"
    text = f"'{value}'" if isinstance(value, str) else str(to_plain(value))
    text = {"True": "true", "False": "false"}.get(text, text).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}…"


def _port_schema(port: str, value: object) -> Schema:
    try:
        return to_schema(value)
    except TopologyError as error:
        raise TopologyError(f"port '{port}': {error}") from None


def _texts(value: object, what: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise TopologyError(f"{shown(value)} is neither text nor a list of {what}")
    return [to_text(item) for item in value]


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name
