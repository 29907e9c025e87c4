"""The JSON Schema of topology files, made from the catalogue and the model, so that editors complete them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from penstock.topology.catalogue import (
    REQUIRED,
    Catalogue,
    Kind,
    Option,
    Role,
    describe_field,
    operator_kinds,
)
from penstock.topology.durations import PATTERN as DURATION_PATTERN
from penstock.topology.model import CHAOS, LOCAL, ON_DIVERGENCE, Delivery, EpochSettings, OnError, RouteKind, Topology
from penstock.topology.on_error import PATTERN as ON_ERROR_PATTERN
from penstock.topology.values import CUSTOM, LOGGING, ON_MALFORMED, needs_argument

Json = dict[str, Any]

_NAME = "^[A-Za-z0-9_-]{1,100}$"
_STREAM: Json = {"type": "string", "pattern": r"^[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100})?$"}
_STREAMS: Json = {"type": "array", "items": _STREAM, "minItems": 1}
_PORTS: Json = {"type": "object", "propertyNames": {"pattern": _NAME}, "minProperties": 1,
                "additionalProperties": {"anyOf": [_STREAM, _STREAMS]}}
_FROM_ENVIRONMENT: Json = {"type": "string", "pattern": r"\$\{env:"}
_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT, "minItems": 1}
_TEXT_BY_NAME: Json = {"type": "object", "additionalProperties": _TEXT, "minProperties": 1}

_TYPES: dict[str, Json] = {
    "string": _TEXT,
    "path": _TEXT,
    "expression": _TEXT,
    "expressions": {"anyOf": [_TEXT, _TEXTS, _TEXT_BY_NAME]},
    "columns": {"anyOf": [_TEXT, _TEXTS]},
    "integer": {"anyOf": [{"type": "integer"}, _FROM_ENVIRONMENT]},
    "number": {"anyOf": [{"type": "number"}, _FROM_ENVIRONMENT]},
    "boolean": {"anyOf": [{"type": "boolean"}, _FROM_ENVIRONMENT]},
    "duration": {"anyOf": [{"type": "number", "minimum": 0},
                           {"type": "string", "pattern": DURATION_PATTERN},
                           _FROM_ENVIRONMENT]},
    "mapping": {"type": "object"},
    "schema": _TEXT,
    "emits": {"anyOf": [_TEXT, {**_TEXT_BY_NAME, "propertyNames": {"pattern": _NAME}}]},
    "code": {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$|\$\{env:"},
    "window": {"type": "string", "pattern": r"^\s*[A-Za-z]+\s*\(.*\)\s*$|\$\{env:"},
    "emission": {"anyOf": [{"enum": ["close", "changes", "every 5 epochs"]},
                           {"type": "string", "pattern": r"^\s*every\s+\d+\s+epochs?\s*$|\$\{env:"}]},
    "times": {"anyOf": [_TEXT, {**_TEXT_BY_NAME, "propertyNames": {"pattern": _NAME}}]},
    "on_error": {"anyOf": [{"enum": ["fail", "drop", "dead-letter", "retry(3)"]},
                           {"type": "string", "pattern": rf"{ON_ERROR_PATTERN}|\$\{{env:"}]},
}
"""How each type of option looks in JSON; a type that is not here may be anything."""


def json_schema(catalogue: Catalogue) -> Json:
    """A JSON Schema (draft 2020-12) that accepts what the reader reads, for the kinds in `catalogue`."""
    kinds = (*catalogue.of("source"), *operator_kinds(), *catalogue.of("sink"))
    definitions = {_definition_name(kind.role, kind.name): _kind(kind) for kind in kinds}
    for role in ("source", "sink"):
        definitions.setdefault(_definition_name(role, CUSTOM), _kind(_own_connector(role)))
    definitions["case"] = _CASE
    definitions["rows"] = _ROWS
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Penstock topology",
        "type": "object",
        "required": ["topology"],
        "additionalProperties": False,
        "properties": {
            "topology": {"type": "string", "pattern": rf"{_NAME}|\$\{{env:", "description": "Its name."},
            "delivery": _choice(tuple(Delivery), "What is promised when something fails.",
                                Delivery.EXACTLY_ONCE),
            "sources": _nodes("source", definitions, "Where tuples come from, by name."),
            "operators": _nodes("operator", definitions, "What is done to tuples, by name."),
            "sinks": _nodes("sink", definitions, "Where tuples go, by name."),
            "epoch": _object([describe_field(field) for field in fields(EpochSettings)],
                             "How the input is cut into epochs."),
            "dead_letters": {**_TEXT, "description": "The file for records and tuples that failed."},
            "acking": {**_TYPES["boolean"], "default": Topology.acking,
                       "description": "Whether bolts may ack their tuples themselves."},
            "ack_timeout": {**_TYPES["duration"], "default": Topology.ack_timeout,
                            "description": "Seconds that such a bolt may take to ack a tuple."},
            "replicas": {**_TYPES["integer"], "minimum": 1, "default": Topology.replicas,
                         "description": "How many full copies run at once; one less may fail and nobody notices."},
            "cells": {"anyOf": [_TEXT, _TEXTS], "default": LOCAL,
                      "description": "The failure domains for replicas: `local`, Spark masters, or `any`."},
            "on_divergence": _choice(ON_DIVERGENCE, "What to do when replicas give different output.",
                                     ON_DIVERGENCE[0]),
            "chaos": _choice(CHAOS, "Whether `penstock crash` may kill replicas.", CHAOS[0]),
            "logging": _choice(LOGGING, "`full` logs every tuple emitted.", LOGGING[0]),
            "commands": {**_TEXTS, "minItems": 0, "description": "Commands such as `Freeze OP2 1`."},
            "tests": _TESTS,
        },
        "$defs": definitions,
    }


def _nodes(role: Role, definitions: Json, doc: str) -> Json:
    choices = [{"$ref": f"#/$defs/{name}"} for name in definitions if name.startswith(f"{role}.")]
    return {"type": ["object", "null"], "description": doc, "propertyNames": {"pattern": _NAME},
            "additionalProperties": {"type": "object", "anyOf": choices}}


def _kind(kind: Kind) -> Json:
    """One node of this kind: its name with the argument, what every node of its role has, its options."""
    required = [kind.name, *(option.name for option in kind.options if option.required)]
    common: Json = {}
    if kind.role == "source":
        common = {"schema": {**_TEXT, "description": "The columns: `id int, user string`."},
                  "on_malformed": _choice(ON_MALFORMED, "What becomes of records that do not fit.",
                                          ON_MALFORMED[0])}
        required = [name for name in required if name not in common]
    elif kind.role == "sink":
        common = {"from": {**_STREAM, "description": "The stream it takes."}}
    else:
        ports = [_PORTS] if kind.named_ports else []
        common = {"from": {"anyOf": [_STREAM, _STREAMS, *ports], "description": "The stream or streams it takes."}}
    written = {"type": "object", "description": kind.doc, "additionalProperties": False}
    if kind.name == CUSTOM and kind.role != "operator":
        written["additionalProperties"] = True
    properties = {kind.name: _argument(kind), **common,
                  **{option.name: _option(option) for option in kind.options if option.name not in common}}
    return {**written, "properties": properties,
            "required": [*(["from"] if "from" in common else []), *required]}


def _argument(kind: Kind) -> Json:
    if kind.argument is None:
        return {"enum": [None, True], "description": kind.doc}
    argument = _option(kind.argument)
    if needs_argument(kind):
        return argument
    description = argument.pop("description")
    return {"anyOf": [argument, {"type": "null"}], "description": description}


def _option(option: Option) -> Json:
    if option.type == "choice":
        return _choice(option.choices, option.doc, option.default)
    described: Json = {**_route(), "description": option.doc} if option.type == "route" \
        else {**_TYPES.get(option.type, {}), "description": option.doc}
    if option.minimum is not None and "anyOf" in described:
        number, *others = described["anyOf"]
        described["anyOf"] = [{**number, "minimum": option.minimum}, *others]
    if isinstance(option.default, str | int | float | OnError) and not option.required:
        described["default"] = str(option.default) if isinstance(option.default, OnError) else option.default
    return described


def _choice(choices: Sequence[str], doc: str, default: Any) -> Json:
    described: Json = {"anyOf": [{"enum": [str(choice) for choice in choices]}, _FROM_ENVIRONMENT],
                       "description": doc}
    return {**described, "default": str(default)} if default in choices else described


def _route() -> Json:
    # The names for completion; the pattern for hash(…), the other names and the environment.
    names = [str(kind) for kind in RouteKind if kind is not RouteKind.HASH]
    return {"anyOf": [{"enum": names}, {"type": "string", "pattern": r"^\s*[\w-]+\s*(\(.*\)\s*)?$|\$\{env:"}]}


def _object(options: Sequence[Option], doc: str) -> Json:
    return {"type": ["object", "null"], "description": doc, "additionalProperties": False,
            "properties": {option.name: _option(option) for option in options}}


def _own_connector(role: Role) -> Kind:
    doc = f"Your own {role}, a Python class."
    return Kind(CUSTOM, role, doc, Option(CUSTOM, "code", "`module:Class`.", REQUIRED))


def _definition_name(role: str, kind: str) -> str:
    return f"{role}.{kind}"


_ROWS: Json = {"type": ["object", "null"],
               "additionalProperties": {"type": ["array", "null"], "items": {"type": "object"}}}
_CASE: Json = {
    "type": "object",
    "required": ["given"],
    "additionalProperties": False,
    "properties": {
        "name": {**_TEXT, "description": "What the case shows."},
        "given": {"$ref": "#/$defs/rows", "description": "The rows of each source."},
        "expect": {"$ref": "#/$defs/rows", "description": "The rows each sink must receive, order aside."},
    },
}
_TESTS: Json = {
    "description": "Cases for `penstock test`: a list, or a mapping from name to case.",
    "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/case", "required": ["name"]}},
              {"type": "object", "additionalProperties": {"$ref": "#/$defs/case"}},
              {"type": "null"}],
}
