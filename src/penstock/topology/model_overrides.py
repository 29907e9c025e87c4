"""`--set key=value` for a topology that was not read from YAML: the same paths, applied to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from penstock.errors import TopologyError
from penstock.topology.environment import Outside
from penstock.topology.model import (
    CHAOS,
    ON_DIVERGENCE,
    Delivery,
    FrozenOptions,
    Location,
    Operator,
    Sink,
    Source,
    Topology,
)
from penstock.topology.problems import Problem, suggest
from penstock.topology.values import (
    LOGGING,
    ON_MALFORMED,
    check_name,
    operator_fields,
    to_boolean,
    to_cells,
    to_choice,
    to_field,
    to_filled_text,
    to_integer,
    to_schema,
    to_seconds,
)


def override(topology: Topology, overrides: Mapping[str, str]) -> tuple[Topology, list[Problem]]:
    """The topology with every value put at its dotted path, and the paths and values that do not fit."""
    problems = []
    for path, value in overrides.items():
        try:
            topology = _put(topology, path.split("."), Outside(value, value))
        except TopologyError as error:
            problems.append(Problem(Location(f"--set {path}"), str(error)))
    return topology, problems


_SETTINGS: dict[str, Callable[[Topology, Outside], Topology]] = {
    "topology": lambda topology, value: replace(topology, name=check_name(value)),
    "delivery": lambda topology, value: replace(
        topology, delivery=Delivery(to_choice(value, tuple(Delivery)))),
    "logging": lambda topology, value: replace(topology, logging=to_choice(value, LOGGING)),
    "dead_letters": lambda topology, value: replace(topology, dead_letters=to_filled_text(value)),
    "acking": lambda topology, value: replace(topology, acking=to_boolean(value)),
    "replicas": lambda topology, value: replace(topology, replicas=to_integer(value)),
    "cells": lambda topology, value: replace(topology, cells=to_cells(value)),
    "on_divergence": lambda topology, value: replace(topology, on_divergence=to_choice(value, ON_DIVERGENCE)),
    "chaos": lambda topology, value: replace(topology, chaos=to_choice(value, CHAOS)),
    "ack_timeout": lambda topology, value: replace(topology, ack_timeout=to_seconds(value)),
}


def _put(topology: Topology, keys: list[str], value: Outside) -> Topology:
    match keys:
        case [setting] if setting in _SETTINGS:
            return _SETTINGS[setting](topology, value)
        case ["epoch", key]:
            settings = {field.name: field for field in fields(topology.epoch)}
            _refuse_unknown(key, settings, "epoch")
            return replace(topology, epoch=replace(topology.epoch, **{key: to_field(settings[key], value)}))
        case ["operators", name, key]:
            _refuse_unknown(name, [one.name for one in topology.operators], "operators")
            return replace(topology, operators=tuple(
                _put_in_operator(one, key, value) if one.name == name else one for one in topology.operators))
        case ["sources", name, key]:
            _refuse_unknown(name, [one.name for one in topology.sources], "sources")
            return replace(topology, sources=tuple(
                _put_in_source(one, key, value) if one.name == name else one for one in topology.sources))
        case ["sinks", name, key]:
            _refuse_unknown(name, [one.name for one in topology.sinks], "sinks")
            return replace(topology, sinks=tuple(
                _put_in_sink(one, key, value) if one.name == name else one for one in topology.sinks))
        case _:
            known = (*_SETTINGS, "epoch.KEY", "sources.NAME.KEY", "operators.NAME.KEY", "sinks.NAME.KEY")
            near = suggest(keys[0], _SETTINGS)
            raise TopologyError(f"no '{'.'.join(keys)}' to set; {near or 'there are: ' + ', '.join(known)}")


def _put_in_operator(operator: Operator, key: str, value: Outside) -> Operator:
    known = operator_fields(type(operator))
    _refuse_unknown(key, known, f"operator {operator.name}")
    return replace(operator, **{known[key].name: to_field(known[key], value)})


def _put_in_source(source: Source, key: str, value: Outside) -> Source:
    if key == "on_malformed":
        return replace(source, on_malformed=to_choice(value, ON_MALFORMED))
    if key == "schema":
        return replace(source, schema=to_schema(value))
    return replace(source, options=FrozenOptions(source.options | {key: str(value)}))


def _put_in_sink(sink: Sink, key: str, value: Outside) -> Sink:
    return replace(sink, options=FrozenOptions(sink.options | {key: str(value)}))


def _refuse_unknown(key: str, known: Mapping[str, object] | list[str], inside: str) -> None:
    if key not in known:
        raise TopologyError(f"no '{key}' in {inside} to set; "
                            f"{suggest(key, known) or 'there are: ' + ', '.join(known)}")
